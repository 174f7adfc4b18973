"""Short sentences in English, German, French and Romanian that say the same.

Every phrase is stored in the form in which it is used, so that gender and case are right.
"""

from dice import Dice, capitalised

LANGUAGES = ("de", "fr", "ro")
CODES = ("en", *LANGUAGES)

# en, de, fr, ro
PEOPLE = (
    ("the boy", "der Junge", "le garçon", "băiatul"),
    ("the girl", "das Mädchen", "la fille", "fata"),
    ("the woman", "die Frau", "la femme", "femeia"),
    ("the man", "der Mann", "l'homme", "bărbatul"),
    ("the teacher", "der Lehrer", "le professeur", "profesorul"),
    ("the doctor", "der Arzt", "le médecin", "doctorul"),
    ("the farmer", "der Bauer", "le fermier", "fermierul"),
    ("the baker", "der Bäcker", "le boulanger", "brutarul"),
    ("the neighbour", "der Nachbar", "le voisin", "vecinul"),
    ("my sister", "meine Schwester", "ma sœur", "sora mea"),
    ("my brother", "mein Bruder", "mon frère", "fratele meu"),
    ("my mother", "meine Mutter", "ma mère", "mama mea"),
)
# en, en negated, de, fr, ro
VERBS = (
    ("sees", "see", "sieht", "voit", "vede"),
    ("buys", "buy", "kauft", "achète", "cumpără"),
    ("sells", "sell", "verkauft", "vend", "vinde"),
    ("finds", "find", "findet", "trouve", "găsește"),
    ("carries", "carry", "trägt", "porte", "cară"),
    ("paints", "paint", "malt", "peint", "pictează"),
    ("washes", "wash", "wäscht", "lave", "spală"),
    ("repairs", "repair", "repariert", "répare", "repară"),
    ("loves", "love", "liebt", "aime", "iubește"),
    ("brings", "bring", "bringt", "apporte", "aduce"),
    ("hides", "hide", "versteckt", "cache", "ascunde"),
    ("cleans", "clean", "putzt", "nettoie", "curăță"),
)
# en, de gender and noun, fr gender and noun, ro gender and noun with its article
THINGS = (
    ("table", "m", "Tisch", "f", "table", "f", "masa"),
    ("boat", "n", "Boot", "m", "bateau", "f", "barca"),
    ("house", "n", "Haus", "f", "maison", "f", "casa"),
    ("door", "f", "Tür", "f", "porte", "f", "ușa"),
    ("car", "n", "Auto", "f", "voiture", "f", "mașina"),
    ("chair", "m", "Stuhl", "f", "chaise", "m", "scaunul"),
    ("lamp", "f", "Lampe", "f", "lampe", "f", "lampa"),
    ("bag", "f", "Tasche", "m", "sac", "f", "geanta"),
    ("coat", "m", "Mantel", "m", "manteau", "f", "haina"),
    ("bicycle", "n", "Fahrrad", "m", "vélo", "f", "bicicleta"),
    ("box", "f", "Kiste", "f", "boîte", "f", "cutia"),
    ("hat", "m", "Hut", "m", "chapeau", "f", "pălăria"),
    ("bottle", "f", "Flasche", "f", "bouteille", "f", "sticla"),
    ("wardrobe", "m", "Schrank", "f", "armoire", "m", "dulapul"),
)
# en, de stem, fr masculine and feminine, ro masculine and feminine
KINDS = (
    ("red", "rot", "rouge", "rouge", "roșu", "roșie"),
    ("white", "weiß", "blanc", "blanche", "alb", "albă"),
    ("black", "schwarz", "noir", "noire", "negru", "neagră"),
    ("green", "grün", "vert", "verte", "verde", "verde"),
    ("yellow", "gelb", "jaune", "jaune", "galben", "galbenă"),
    ("blue", "blau", "bleu", "bleue", "albastru", "albastră"),
    ("heavy", "schwer", "lourd", "lourde", "greu", "grea"),
    ("empty", "leer", "vide", "vide", "gol", "goală"),
)
PLACES = (
    ("in the garden", "im Garten", "dans le jardin", "în grădină"),
    ("at the station", "am Bahnhof", "à la gare", "la gară"),
    ("at the market", "auf dem Markt", "au marché", "la piață"),
    ("in the kitchen", "in der Küche", "dans la cuisine", "în bucătărie"),
    ("behind the church", "hinter der Kirche", "derrière l'église", "în spatele bisericii"),
    ("near the river", "am Fluss", "près de la rivière", "lângă râu"),
    ("in the village", "im Dorf", "au village", "în sat"),
    ("in front of the school", "vor der Schule", "devant l'école", "în fața școlii"),
)
TIMES = (
    ("today", "heute", "aujourd'hui", "astăzi"),
    ("in the morning", "am Morgen", "le matin", "dimineața"),
    ("in the evening", "am Abend", "le soir", "seara"),
    ("every day", "jeden Tag", "chaque jour", "în fiecare zi"),
    ("on Sunday", "am Sonntag", "dimanche", "duminică"),
    ("in summer", "im Sommer", "en été", "vara"),
    ("in winter", "im Winter", "en hiver", "iarna"),
)
COUNTS = (
    ("three", "drei", "trois", "trei"),
    ("four", "vier", "quatre", "patru"),
    ("five", "fünf", "cinq", "cinci"),
    ("six", "sechs", "six", "șase"),
    ("ten", "zehn", "dix", "zece"),
)
MANY = (
    ("apples", "Äpfel", "pommes", "mere"),
    ("books", "Bücher", "livres", "cărți"),
    ("flowers", "Blumen", "fleurs", "flori"),
    ("birds", "Vögel", "oiseaux", "păsări"),
    ("children", "Kinder", "enfants", "copii"),
    ("trees", "Bäume", "arbres", "copaci"),
)
NOMINATIVE = {"m": "der", "f": "die", "n": "das"}


def _elided(before: str, word: str) -> str:
    """Join French ``le``, ``la`` or ``ne`` and a word: ``l'armoire``, ``n'aime``."""
    return f"{before[0]}'{word}" if word[0] in "aeiouéêh" else f"{before} {word}"


def _thing(dice: Dice) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Return one thing with its adjective as subject, as object, and its bare predicate."""
    en, de_gender, de, fr_gender, fr, ro_gender, ro = dice.pick(THINGS)
    kind, de_kind, fr_m, fr_f, ro_m, ro_f = dice.pick(KINDS)
    fr_kind = fr_m if fr_gender == "m" else fr_f
    ro_kind = ro_m if ro_gender == "m" else ro_f
    french = _elided("le" if fr_gender == "m" else "la", fr)
    german = f"{NOMINATIVE[de_gender]} {de_kind}e {de}"
    subject = {
        "en": f"the {kind} {en}",
        "de": german,
        "fr": f"{french} {fr_kind}",
        "ro": f"{ro} {ro_kind}",
    }
    as_object = dict(subject)
    if de_gender == "m":
        as_object["de"] = f"den {de_kind}en {de}"
    bare = {
        "en": f"the {en} is {kind}",
        "de": f"{NOMINATIVE[de_gender]} {de} ist {de_kind}",
        "fr": f"{french} est {fr_kind}",
        "ro": f"{ro} este {ro_kind}",
    }
    return subject, as_object, bare


def _column(row: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(CODES, row, strict=True))


def _statement(dice: Dice) -> dict[str, str]:
    """Somebody does something, somewhere, at some time, or does not."""
    who, (verb, infinitive, *others) = _column(dice.pick(PEOPLE)), dice.pick(VERBS)
    does = _column((verb, *others))
    _, what, _ = _thing(dice)
    where, when = _column(dice.pick(PLACES)), _column(dice.pick(TIMES))
    shape = dice.below(5)
    if shape == 0:
        return {code: f"{who[code]} {does[code]} {what[code]}." for code in CODES}
    if shape == 1:
        return {code: f"{who[code]} {does[code]} {what[code]} {where[code]}." for code in CODES}
    if shape == 2:
        row = {code: f"{when[code]}, {who[code]} {does[code]} {what[code]}." for code in CODES}
        return row | {"de": f"{when['de']} {does['de']} {who['de']} {what['de']}."}
    if shape == 3:
        row = {code: f"{who[code]} {does[code]} {what[code]} {when[code]}." for code in CODES}
        return row | {"de": f"{who['de']} {does['de']} {when['de']} {what['de']}."}
    return {
        "en": f"{who['en']} does not {infinitive} {what['en']}.",
        "de": f"{who['de']} {does['de']} {what['de']} nicht.",
        "fr": f"{who['fr']} {_elided('ne', does['fr'])} pas {what['fr']}.",
        "ro": f"{who['ro']} nu {does['ro']} {what['ro']}.",
    }


def _about_a_thing(dice: Dice) -> dict[str, str]:
    """What a thing is like, where it is, or whether it is there."""
    subject, _, bare = _thing(dice)
    where = _column(dice.pick(PLACES))
    shape = dice.below(3)
    if shape == 0:
        return {code: f"{text}." for code, text in bare.items()}
    if shape == 1:
        verb = {"en": "is", "de": "ist", "fr": "est", "ro": "este"}
        return {code: f"{subject[code]} {verb[code]} {where[code]}." for code in CODES}
    return {
        "en": f"where is {subject['en']}?",
        "de": f"wo ist {subject['de']}?",
        "fr": f"où est {subject['fr']} ?",
        "ro": f"unde este {subject['ro']}?",
    }


def _count(dice: Dice) -> dict[str, str]:
    """How many there are."""
    number, things = _column(dice.pick(COUNTS)), _column(dice.pick(MANY))
    where = _column(dice.pick(PLACES))
    start = {"en": "there are", "de": "es gibt", "fr": "il y a", "ro": "sunt"}
    return {code: f"{start[code]} {number[code]} {things[code]} {where[code]}." for code in CODES}


def sentences(dice: Dice) -> dict[str, str]:
    """Return one sentence in the four languages, by code."""
    make = dice.pick((_statement, _statement, _statement, _statement, _about_a_thing, _count))
    return {code: capitalised(text) for code, text in make(dice).items()}
