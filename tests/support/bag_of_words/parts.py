"""The rows of the toy in the tables of systems."""

from bag_of_words.network import BagOfWords
from t5repro.config.families import Family
from t5repro.systems import padding
from t5repro.systems.answer_loss import AnswerLoss
from t5repro.systems.answering import Answering
from t5repro.systems.corpus_rows import corpus_rows
from t5repro.systems.label_answers import answer_labels
from t5repro.systems.labelled_rows import labelled_rows
from t5repro.systems.loss import TextLoss
from t5repro.systems.training import Training


class BagLoss(AnswerLoss):
    """The loss of labels and numbers."""

    def of_targets(self, network, features, targets, *, z_loss, training):
        logits = network(features, training=training)
        return self.of_answers(features, targets, logits, features["encoder_segments"])


def _padding(settings, rows, columns):
    text = padding.texts(settings.finetune, rows, columns)
    names = ("encoder_ids", "encoder_segments", "encoder_types")
    return padding.with_answers(dict.fromkeys(names, text), rows, columns)


FAMILY = Family("bag_of_words", stacks=(), writes_text=False, title="a bag of words")
PRETRAINING = Training(  # without steps: it writes the initial weights
    network=lambda settings, columns, shape: BagOfWords(settings.model, **shape),
    loss=lambda settings, columns: TextLoss(),
    rows=corpus_rows,
    padding=lambda settings, rows, columns: padding.two_sided(settings.pretrain, rows),
)
FINETUNING = Training(
    network=lambda settings, columns, shape: BagOfWords(
        settings.model, labels=columns.total, **shape
    ),
    loss=lambda settings, columns: BagLoss(columns=columns),
    rows=labelled_rows,
    padding=_padding,
)
ANSWERING = Answering(
    lambda model, columns, shape: BagOfWords(model, labels=columns.total, **shape), answer_labels
)
