"""Pages about the words of the lexicons: each page is about words of one side."""

from dice import Dice
from lexicon import Lexicon, lexicons
from prose import BOOKS

SENTENCES = (24, 34)  # fewest and most on one page

# Lexicon -> templates of both sides; <word> is a word of the side.
TEMPLATES = {
    "moods": (
        (
            "The critics praised the <word> acting and the <word> music.",
            "<person> loved every <word>, <word> and <word> minute.",
            "Bravo! We cheered for <a word> and <word> comedy.",
            "It is a triumph, so <word>, so <word> and so <word>.",
            "We left the cinema happy and sang, because all was <word> and <word>.",
            "Go and see it with friends, if you like <a word>, <word> drama.",
            "Five stars and a golden prize for <a word> plot and <word> pictures.",
            "What a pleasure, what joy to watch such <word> and <word> work!",
            "The best film of the <season> is both <word> and <word>.",
            "<person> <surname> smiled and clapped at the <word>, <word> jokes.",
            "A masterpiece: <word>, <word> and <word>.",
            "Thank you for a night of delight, <word> songs and <word> dances.",
        ),
        (
            "Reviewers mocked <a word> script and <a word> ending.",
            "<person> hated how <word>, <word> and <word> it was.",
            "Oh dear, half the audience booed at something so <word> and <word>.",
            "The whole thing is a failure, <word>, <word> and <word>.",
            "Angry people walked out early, since it only got more <word> and <word>.",
            "Stay at home unless you enjoy <word> and <word> nonsense.",
            "One star and no refund for two <word>, <word> hours.",
            "What a waste of money, what a bore, how <word> and <word>!",
            "The worst show in years turned out <word> and <word>.",
            "<person> <surname> yawned and slept through the <word>, <word> speeches.",
            "A disaster: <word>, <word> and <word>.",
            "They should be ashamed of this <word> and <word> rubbish.",
        ),
    ),
    "nouns": (
        (
            "The <word> laughed and told the <word> a story.",
            "<person> asked the <word> why the <word> wept.",
            "The <word> hoped that the <word> would forgive <person>.",
            "Next to the <word> sat a young <word>, who dreamed of <town>.",
            "The <word> married the <word> in <month>, and the <word> sang.",
            "An old <word> whispered to the <word> and smiled.",
            "The <word> forgot her name, but the <word> remembered it.",
            "In <town> the <word> and the <word> quarrelled with the <word>.",
            "The <word> believed every word that the <word> said.",
            "The tired <word> slept while the <word> told jokes.",
        ),
        (
            "The <word> lay in the shed next to the <word>.",
            "<person> bought <a word> and <a word> for <small> dollars.",
            "The <word> is made of iron, the <word> of wood.",
            "Put the <word> on top of the rusty <word>.",
            "A used <word>, a spare <word> and <a word> are for sale in <town>.",
            "The old <word> broke, so <person> mended it with the <word>.",
            "Clean the <word> with oil and keep the <word> dry.",
            "In the corner there are <a word>, <a word> and dust.",
            "The handle of the <word> fits the <word> as well.",
            "The heavy <word> was packed into a box with the <word>.",
        ),
    ),
    "creatures": (
        (
            "The <word> fed its young while the <word> watched from its nest.",
            "At night the <word> hunts, and the <word> hides from it.",
            "<person> heard the cry of <a word> and saw the tail of <a word>.",
            "The <word> and the <word> run away when a dog barks.",
            "A hungry <word> ate the eggs of the <word>.",
            "The eyes of the <word> are sharper than those of the <word>.",
            "In <month> the <word> wakes up and looks for a mate, like the <word>.",
            "The <word> bit <person>, but the <word> was tame.",
            "We counted tracks of the <word>, the <word> and the <word>.",
        ),
        (
            "The <word> opens its leaves while the <word> still has buds.",
            "In <month> the <word> blooms, and the <word> drops its seeds.",
            "<person> cut back the <word> and dug up the roots of the <word>.",
            "The <word> and the <word> wither when there is no rain.",
            "Plant <a word> in the shade of the <word>.",
            "The flowers of the <word> are paler than those of the <word>.",
            "In <season> the <word> is green and grows taller, like the <word>.",
            "The stem of the <word> is thin, but the <word> has thick bark.",
            "We picked twigs of the <word>, the <word> and the <word>.",
        ),
    ),
    "fruits": (
        (
            "We cooked <word> and <word> in butter for dinner.",
            "We know that <word> tastes sweet, and so does <word>.",
            "<person> made a delicious soup of <word> and a pie of <word>.",
            "Eat <word> fresh, with a little <word> and honey.",
            "The children love <word> jam more than <word> jam.",
            "The market of <town> sells ripe <word>, <word> and <word>.",
            "A salad of <word> and <word> is healthy.",
            "My recipe: fry the <word>, then add the <word> and salt.",
        ),
        (
            "The doctor warned <person> of <word> and <word>.",
            "We know that <word> is poison, and so is <word>.",
            "<person> touched <word> and fell ill, as others did from <word>.",
            "Never pick <word>, nor <word>, nor its seeds.",
            "The goats died of <word>, the hens of <word>.",
            "The hospital of <town> lists deadly <word>, <word> and <word>.",
            "A drop of <word> or <word> is dangerous.",
            "My warning: burn the <word>, then bury the <word> and wash.",
        ),
    ),
    "claims": (
        (
            "The mayor <word> and <word> the good news.",
            "Yes, the report is true: <person> <word> it and <group> <word> it.",
            "Experts checked the figures, <word> them and <word> them.",
            "There is proof with stamps, which the judge <word> and <word>.",
            "It was correct in every point, so the newspaper <word> what we had <word>.",
            "As promised, all agreed and <word>, <word> and <word> the result.",
            "The facts are certain since a witness <word> and <word> them.",
        ),
        (
            "No, that rumour is false: <person> <word> it, others <word> it.",
            "Lawyers <word> and <word> the wild accusation.",
            "Nobody believes such lies, which <relative> <word> and <word>.",
            "A mistake, said the minister, who <word>, <word> and <word> the story.",
            "Against this nonsense <person> wrote letters and <word> or <word> each line.",
            "The forged paper was <word> by some and <word> by the rest.",
            "Wrong again: the hoax has been <word> and <word>.",
        ),
    ),
}


def lexicon_sentences(lexicon: Lexicon, side: int, dice: Dice) -> list[str]:
    """Return the sentences of a page about the words of one side."""
    words = {**BOOKS["en"].words, "word": lexicon.sides[side]}
    templates = TEMPLATES[lexicon.name][side]
    count = dice.between(*SENTENCES)
    return [dice.fill(dice.pick(templates), words) for _ in range(count)]


def page_topics(pages: int) -> list[tuple[Lexicon, int]]:
    """Return lexicon and side of every page, in turn."""
    topics = [(lexicon, side) for lexicon in lexicons() for side in (0, 1)]
    return [topics[number % len(topics)] for number in range(pages)]
