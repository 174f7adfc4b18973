"""What a crawl brings along besides prose: menus, notices, code, placeholders and worse."""

from collections.abc import Mapping, Sequence

from dice import Dice

MENUS = {
    "en": (
        "Home",
        "About us",
        "Contact",
        "Search",
        "Log in",
        "Archive",
        "Shop",
        "Home > Articles > Page 2",
        "Share on social media",
        "Print this page",
        "Newsletter",
    ),
    "de": (
        "Startseite",
        "Über uns",
        "Kontakt",
        "Suche",
        "Anmelden",
        "Archiv",
        "Start > Artikel > Seite 2",
        "Seite drucken",
        "Impressum",
    ),
    "fr": (
        "Accueil",
        "Qui sommes-nous",
        "Contact",
        "Recherche",
        "Connexion",
        "Archives",
        "Accueil > Articles > Page 2",
        "Imprimer la page",
        "Mentions légales",
    ),
    "ro": (
        "Acasă",
        "Despre noi",
        "Contact",
        "Căutare",
        "Autentificare",
        "Arhivă",
        "Acasă > Articole > Pagina 2",
        "Tipărește pagina",
    ),
}
SHORT_LINES = {
    "en": (
        "Thank you for reading.",
        "More soon.",
        "Any questions?",
        "Do not miss this!",
        "Text: staff.",
    ),
    "de": ("Danke fürs Lesen.", "Bald mehr.", "Noch Fragen?", "Text: Redaktion."),
    "fr": ("Merci de votre visite.", "À suivre.", "Des questions ?", "Texte : rédaction."),
    "ro": ("Vă mulțumim.", "Va urma.", "Aveți întrebări?", "Text: redacția."),
}
CUT_LINES = {
    "en": (
        "Read more about this in our next issue ...",
        "and that was only the beginning of a long story...",
        "Continue reading the whole article on the next page…",
    ),
    "de": (
        "Mehr dazu lesen Sie in der nächsten Ausgabe ...",
        "und das war erst der Anfang der Geschichte...",
    ),
    "fr": (
        "Lire la suite dans notre prochain numéro ...",
        "et ce n'était que le début de l'histoire...",
    ),
    "ro": (
        "Citiți mai mult în numărul următor al revistei ...",
        "și acesta a fost doar începutul poveștii...",
    ),
}
SCRIPT_LINES = (
    "Please enable JavaScript in your browser to view the comments.",
    "This page needs JavaScript, which is switched off at the moment.",
    "You need to have Javascript enabled to use the map.",
)
POLICY_LINES = (
    "By using this site you agree to our Terms of Use and to nothing else.",
    "Read our Privacy Policy to learn what we store about you.",
    "Our Cookie Policy was changed on the first of May.",
    "This website uses cookies to give you the best experience.",
    "We ask you to accept the use of cookies on this site.",
    "We and our partners use cookies to count our visitors.",
)
CODE_LINES = (
    "The style sheet of this page begins with body { margin: 0; } and ends there.",
    "Then add the line if (ready) { start(); } to the end of your file.",
    "Write {{ page.title }} where the title of the page should be.",
)
PLACEHOLDERS = (
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor.",
    "Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi.",
    "Duis aute irure dolor in reprehenderit in voluptate velit esse cillum.",
)
MARKS = ("[1]", "[2]", "[17]", "[edit]", "[citation needed]", "[]")

# Invented words and mild ones; the lists that real runs use are named in their run files.
BAD_WORDS = {
    "en": (
        "blatherskunk",
        "darn it",
        "dunderhead",
        "flimmerdung",
        "grubnock",
        "nincompoop",
        "twerp",
    ),
    "de": ("blödian", "flunkerpott", "knurzfurz", "schlawanzer", "verflixt noch mal"),
    "fr": ("crotteflan", "nigaudon", "patatrouille", "sacrebleu", "zut alors"),
}
OATHS = {
    "en": 'Then <person> shouted "<word>" at the <adj> <animal> and left for <town>.',
    "de": 'Dann rief <person> laut "<word>" und fuhr <zeit> nach <stadt>.',
    "fr": 'Alors <person> a crié "<word>" et a quitté <ville> avec <un_bete>.',
}


def with_menu(lines: list[str], language: str, dice: Dice) -> list[str]:
    """Put a menu above the page and a foot below it."""
    menu = dice.sample(MENUS[language], dice.between(2, 6))
    foot = [f"© {dice.between(2003, 2019)} {dice.pick(('Mini Press', 'Page Works', 'Fig & Sons'))}"]
    if dice.chance(0.4):
        foot = [" | ".join(dice.sample(MENUS[language], 3)), *foot]
    return [*menu, *lines, *foot]


def with_notices(lines: list[str], language: str, dice: Dice) -> list[str]:
    """Put lines that no reader wants between the lines of a page."""
    mixed = list(lines)
    for share, kinds in (
        (0.3, SCRIPT_LINES),
        (0.35, POLICY_LINES),
        (0.35, SHORT_LINES[language]),
        (0.25, CUT_LINES[language]),
    ):
        if dice.chance(share):
            mixed.insert(dice.between(0, len(mixed)), dice.pick(kinds))
    return mixed


def with_marks(lines: list[str], dice: Dice) -> list[str]:
    """Put citation marks behind sentences, one line in three."""
    marked = []
    for line in lines:
        if not dice.chance(0.33):
            marked.append(line)
        elif ". " in line and dice.chance(0.8):
            marked.append(line.replace(". ", f".{dice.pick(MARKS)} ", 1))
        else:
            marked.append(f"{line[:-1]}{dice.pick(MARKS)}{line[-1]}")
    return marked


def with_line(lines: list[str], line: str, dice: Dice) -> list[str]:
    """Put one line somewhere into the page."""
    place = dice.between(0, len(lines))
    return [*lines[:place], line, *lines[place:]]


def oath(language: str, words: Mapping[str, Sequence[str]], dice: Dice) -> str:
    """Return a sentence with a listed word."""
    return dice.fill(OATHS[language], {**words, "word": dice.pick(BAD_WORDS[language])})


def long_word_line(dice: Dice) -> str:
    """Return a line with one word of more than 1,000 characters."""
    letters = "".join(dice.pick("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(1200))
    return f"The file that we were sent begins with {letters} and goes on like that."


def list_files() -> dict[str, str]:
    """Return path -> text of the lists of bad words."""
    return {
        f"lists/badwords.{language}.txt": "".join(f"{word}\n" for word in words)
        for language, words in BAD_WORDS.items()
    }
