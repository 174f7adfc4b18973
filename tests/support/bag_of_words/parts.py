"""The rows of the toy in the tables of systems."""

from bag_of_words.network import BagOfWords
from t5repro.config.families import Family
from t5repro.systems import padding
from t5repro.systems.answer_loss import AnswerLoss
from t5repro.systems.corpus_rows import corpus_rows
from t5repro.systems.label_answers import answer_labels
from t5repro.systems.labelled_rows import answer_heads, labelled_rows
from t5repro.systems.loss import TextLoss
from t5repro.systems.training import Training


class BagLoss(AnswerLoss):
    """The loss of labels and numbers."""

    def target_losses(self, network, features, targets, *, z_loss, training):
        logits = network(features, training=training)
        return self.answer_losses(features, targets, logits, features["encoder_segments"])


def _padding(settings, rows, columns):
    text = padding.texts(settings.finetune, rows, columns)
    names = ("encoder_ids", "encoder_segments", "encoder_types")
    return padding.answer_batch(dict.fromkeys(names, text), rows, columns)


FAMILY = Family("bag_of_words", stacks=(), writes_text=False, title="a bag of words")


def make_network(model, heads, shape):
    return BagOfWords(model, labels=heads.columns.total, **shape)


PRETRAINING = Training(  # without steps: it writes the initial weights
    family="bag_of_words",
    loss=lambda settings, columns: TextLoss(),
    rows=corpus_rows,
    padding=lambda settings, rows, columns: padding.two_sided(settings.pretrain, rows),
)
FINETUNING = Training(
    family="bag_of_words",
    heads=answer_heads,
    loss=lambda settings, columns: BagLoss(columns=columns),
    rows=labelled_rows,
    padding=_padding,
)
ANSWERING = answer_labels
