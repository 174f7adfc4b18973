"""French prose: noun phrases with their articles, and sentence templates by topic.

Slots: `le_x` has the definite article, `un_x` the indefinite one; `du_x` and `au_x` join the
definite article with *de* and *à*.
"""

# masculine, feminine; all follow their noun
OF_THINGS = (
    ("rouge", "rouge"),
    ("tranquille", "tranquille"),
    ("célèbre", "célèbre"),
    ("étroit", "étroite"),
    ("vide", "vide"),
    ("lourd", "lourde"),
    ("blanc", "blanche"),
    ("ancien", "ancienne"),
    ("moderne", "moderne"),
    ("étrange", "étrange"),
    ("fragile", "fragile"),
    ("vert", "verte"),
    ("solide", "solide"),
    ("bleu", "bleue"),
    ("voisin", "voisine"),
    ("charmant", "charmante"),
)
ADJECTIVES = {
    "chose": OF_THINGS,
    "lieu": OF_THINGS,
    "bete": (
        ("noir", "noire"),
        ("blanc", "blanche"),
        ("brun", "brune"),
        ("fidèle", "fidèle"),
        ("timide", "timide"),
        ("gourmand", "gourmande"),
        ("maigre", "maigre"),
        ("fatigué", "fatiguée"),
        ("curieux", "curieuse"),
        ("tranquille", "tranquille"),
    ),
    "plat": (
        ("chaud", "chaude"),
        ("froid", "froide"),
        ("salé", "salée"),
        ("léger", "légère"),
        ("simple", "simple"),
        ("parfumé", "parfumée"),
        ("sucré", "sucrée"),
        ("traditionnel", "traditionnelle"),
    ),
}

NOUNS = {
    "chose": (
        ("m", "bateau"),
        ("m", "vélo"),
        ("m", "manteau"),
        ("m", "piano"),
        ("m", "panier"),
        ("f", "table"),
        ("f", "lampe"),
        ("f", "chaise"),
        ("f", "armoire"),
        ("f", "horloge"),
        ("f", "échelle"),
        ("f", "boîte"),
        ("f", "bouteille"),
        ("f", "porte"),
    ),
    "lieu": (
        ("m", "jardin"),
        ("m", "marché"),
        ("m", "moulin"),
        ("m", "village"),
        ("m", "château"),
        ("m", "hôtel"),
        ("m", "port"),
        ("f", "gare"),
        ("f", "église"),
        ("f", "école"),
        ("f", "rue"),
        ("f", "maison"),
        ("f", "bibliothèque"),
        ("f", "place"),
    ),
    "bete": (
        ("m", "chien"),
        ("m", "chat"),
        ("m", "cheval"),
        ("m", "canard"),
        ("m", "âne"),
        ("m", "renard"),
        ("f", "chèvre"),
        ("f", "poule"),
        ("f", "oie"),
        ("f", "hirondelle"),
    ),
    "plat": (
        ("m", "gâteau"),
        ("m", "fromage"),
        ("m", "gratin"),
        ("f", "soupe"),
        ("f", "tarte"),
        ("f", "omelette"),
        ("f", "salade"),
    ),
}
VOWELS = "aeiouâéêèh"


def _articles(gender: str, noun: str) -> dict[str, str]:
    """Return the four ways to begin a phrase with this noun."""
    if noun[0] in VOWELS:
        definite = {"le": "l'", "du": "de l'", "au": "à l'"}
    elif gender == "m":
        definite = {"le": "le ", "du": "du ", "au": "au "}
    else:
        definite = {"le": "la ", "du": "de la ", "au": "à la "}
    return definite | {"un": "un " if gender == "m" else "une "}


def _phrases() -> dict[str, tuple[str, ...]]:
    """Return slot -> every noun of the class with every adjective."""
    slots: dict[str, tuple[str, ...]] = {}
    for kind, nouns in NOUNS.items():
        for way in ("le", "un", "du", "au"):
            slots[f"{way}_{kind}"] = tuple(
                f"{_articles(gender, noun)[way]}{noun} {adjective[gender == 'f']}"
                for gender, noun in nouns
                for adjective in ADJECTIVES[kind]
            )
    return slots


WORDS = _phrases() | {
    "person": (
        "Camille",
        "Louise",
        "Jeanne",
        "Margot",
        "Élise",
        "Renée",
        "Sophie",
        "Thérèse",
        "Bernard",
        "Gaston",
        "Henri",
        "Jules",
        "Marcel",
        "Rémi",
        "Théo",
        "Vincent",
    ),
    "nom": (
        "Beaumont",
        "Carpentier",
        "Delorme",
        "Fournier",
        "Garnier",
        "Lefèvre",
        "Marchand",
        "Noël",
        "Perrin",
        "Rousset",
        "Tessier",
        "Vidal",
    ),
    "ville": (
        "Beaurivage",
        "Chantelune",
        "Fontclaire",
        "Grandpré",
        "Hautefeuille",
        "Mirebois",
        "Neuville",
        "Pontarmé",
        "Rochevert",
        "Valbonne",
        "Vieuxmoulin",
        "Saint-Aubert",
    ),
    "metier": (
        "le boulanger",
        "le médecin",
        "le jardinier",
        "le pêcheur",
        "le facteur",
        "le professeur",
        "la boulangère",
        "la pharmacienne",
        "la maîtresse",
        "la fermière",
        "la libraire",
    ),
    "nombre": ("deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "douze"),
    "chiffre": ("14", "25", "37", "48", "60", "85", "120", "175", "240", "360"),
    "annee": (
        "1871",
        "1884",
        "1896",
        "1908",
        "1923",
        "1931",
        "1948",
        "1956",
        "1964",
        "1979",
        "1987",
        "2003",
    ),
    "date": (
        "3 mars 1998",
        "21 juin 2004",
        "9 octobre 1987",
        "14 février 2011",
        "30 novembre 2016",
        "5 mai 1979",
    ),
    "de_mois": (
        "de janvier",
        "de février",
        "de mars",
        "d'avril",
        "de mai",
        "de juin",
        "de juillet",
        "d'août",
        "de septembre",
        "d'octobre",
        "de novembre",
        "de décembre",
    ),
    "jour": ("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"),
    "moment": (
        "le matin",
        "le soir",
        "après le déjeuner",
        "pendant la nuit",
        "en fin de semaine",
        "avant l'aube",
        "en été",
        "en hiver",
        "chaque jour",
    ),
    "endroit": (
        "derrière l'église",
        "près de la rivière",
        "au bord du canal",
        "sur la place du marché",
        "au pied du château",
        "à côté de la gare",
        "devant l'école",
        "dans le jardin",
        "dans la cuisine",
    ),
    "temps": (
        "la pluie",
        "le brouillard",
        "la neige",
        "la grêle",
        "le gel",
        "le vent",
        "le soleil",
    ),
    "parent": (
        "ma grand-mère",
        "mon oncle",
        "ma sœur",
        "notre voisin",
        "mon père",
        "une vieille amie",
        "ma tante",
        "mon frère",
    ),
    "groupe": (
        "le conseil municipal",
        "la chorale",
        "le club de lecture",
        "la paroisse",
        "le club d'échecs",
        "la société d'histoire",
    ),
    "avis": (
        "une erreur",
        "une bénédiction",
        "un petit miracle",
        "une plaisanterie coûteuse",
        "une affaire de goût",
        "la meilleure idée depuis longtemps",
    ),
}

GENERAL = (
    (
        "Personne à <ville> ne sait exactement quand cela a commencé, mais on parle souvent de "
        "l'année <annee>."
    ),
    "M. <nom> rassemble depuis <nombre> ans des lettres, des photos et des cartes à ce sujet.",
    "Il a fallu <nombre> semaines, et à la fin même <parent> a changé d'avis.",
    "Qu'auriez-vous fait à notre place ?",
    "Pour <person>, c'est <avis> ; pour <person>, c'est <avis>.",
    "Le <date>, le journal de <ville> a publié une courte note sur cette affaire.",
    "La première année, il y a eu <chiffre> visiteurs, et la deuxième plus de <chiffre>0.",
    (
        "Quand j'ai interrogé <person>, la réponse a été : \"Revenez au mois <de_mois> et voyez "
        'vous-même."'
    ),
    '"C\'est <avis>", a dit <parent> en fermant la porte.',
    "Est-ce que cela en vaut la peine ? Pour la plupart d'entre nous, oui.",
    (
        "<metier> de <ville> demande <chiffre> euros pour ce travail, presque le double de ce "
        "que l'on paie à <ville>."
    ),
    "Il nous faut de la patience, une bonne lumière et, par exemple, <un_chose>.",
    "Nous avons attendu longtemps sous <temps> sans rien dire.",
    "On oublie souvent que <ville> n'avait alors que <chiffre> maisons.",
    "Pour nous aider, écrivez à <person> <nom> avant la fin du mois <de_mois>.",
    "Depuis <annee>, <person> et <person> ne se parlent plus.",
    "La vieille règle reste valable : mesurer deux fois, couper une seule fois.",
    "<endroit>, il y a <un_chose> que personne ne veut déplacer.",
    "Bien sûr, tout le monde à <ville> n'était pas d'accord avec <person>.",
    "<groupe> a discuté pendant <nombre> heures pour ne rien décider.",
    "Pendant <nombre> jours, <temps> n'a pas cessé de nous surprendre.",
    "Plus tard, <person> <nom> a quitté <ville> et n'en a plus jamais parlé.",
    "Demandez <person> et apportez quelque chose à manger.",
    "<parent> garde encore la clé <du_chose> dans un tiroir.",
    "À <ville>, on fait ces choses le <jour>, jamais le <jour>.",
    "Sur la photo, on voit <person>, <person> et <un_bete>.",
    "Pourquoi personne ne l'a-t-il dit plus tôt ?",
    "<nombre> d'entre nous ont pris le bus, les autres ont marché.",
    "La moitié de l'argent venait de nos amis, l'autre moitié d'une fête.",
    "Mme <nom> et M. <nom> étaient d'accord, ce qui est rare.",
    "Non loin <du_lieu>, on sent <moment> une odeur de café et de bois frais.",
)

TOPICS: dict[str, tuple[dict[str, tuple[str, ...]], tuple[str, ...]]] = {
    "jardin": (
        {
            "plantes": (
                "les haricots",
                "les carottes",
                "les roses",
                "les oignons",
                "les tulipes",
                "les petits pois",
                "les fraises",
                "les tomates",
            ),
            "ennemis": (
                "les limaces",
                "les souris",
                "les pucerons",
                "les corbeaux",
                "les chenilles",
            ),
        },
        (
            "<person> sème <plantes> au mois <de_mois>, dès que la terre est assez chaude.",
            "N'arrosez jamais <plantes> à midi, car les gouttes brûlent les feuilles.",
            "Pendant la nuit, <ennemis> ont mangé presque toute la récolte.",
            "Nous couvrons <plantes> de paille quand le premier gel approche.",
            "À <ville>, on dit que <plantes> du <jour> ne poussent jamais.",
            "Est-ce que <plantes> supportent l'ombre <du_lieu> ?",
            "Creusez un trou profond, remplissez-le de compost et attendez une semaine.",
            "Contre <ennemis>, il faut des coquilles d'œufs, du café et de la patience.",
            "Au fond du jardin, <un_chose> attend le retour du printemps.",
        ),
    ),
    "trains": (
        {"agent": ("le contrôleur", "la conductrice", "le chef de gare", "la guichetière")},
        (
            (
                "Le premier train de <ville> à <ville> a quitté la gare le <date> avec <chiffre> "
                "voyageurs."
            ),
            "<agent> a sifflé, et le train a commencé à rouler.",
            "Depuis <annee>, la ligne entre <ville> et <ville> n'a plus qu'une seule voie.",
            "\"Vos billets, s'il vous plaît\", a dit <agent>, mais personne n'en avait.",
            "Dans la voiture-restaurant, nous avons trouvé <un_chose> et un journal de <annee>.",
            (
                "Pourquoi a-t-on fermé la ligne de <ville>, qui transportait <chiffre> personnes "
                "par jour ?"
            ),
            (
                "La neige a bloqué le train de nuit près de <ville>, et <agent> a préparé du thé "
                "pour tous."
            ),
            "De la fenêtre, on aperçoit <le_lieu> quand il n'y a pas de brouillard.",
            (
                "Autrefois, il fallait <nombre> heures ; aujourd'hui, le voyage dure <nombre> "
                "minutes de moins."
            ),
        ),
    ),
    "cuisine": (
        {
            "produit": (
                "la farine",
                "le beurre",
                "l'ail",
                "le citron",
                "le riz",
                "le poivre",
                "le thym",
                "la crème",
                "le persil",
                "le sucre",
            )
        },
        (
            (
                "Mettez <produit> dans une poêle, ajoutez <produit> et remuez pendant <nombre> "
                "minutes."
            ),
            "Le secret, c'est <produit>, mais pas trop.",
            "<parent> ne pesait jamais <produit> ; une poignée était une poignée.",
            "<person> a laissé brûler <le_plat> et a servi <un_plat> à la place.",
            "Peut-on congeler <le_plat> ? Oui, pendant <nombre> semaines.",
            "Avec <le_plat>, on boit un verre de lait froid.",
            "Goûtez d'abord <le_plat>, et seulement ensuite ajoutez <produit>.",
            "À <ville>, on mange <le_plat> avec <produit>, ce qui est meilleur qu'on ne le croit.",
            "Laissez reposer <le_plat> <chiffre> minutes avant de servir.",
        ),
    ),
    "riviere": (
        {
            "poissons": (
                "les truites",
                "les brochets",
                "les perches",
                "les anguilles",
                "les carpes",
                "les saumons",
            )
        },
        (
            (
                "La rivière est profonde de <nombre> mètres à <ville>, et plus froide qu'on ne "
                "le pense."
            ),
            "Au mois <de_mois>, <poissons> remontent le courant.",
            "La crue de <annee> a emporté <le_lieu> et <chiffre> moutons.",
            "<metier> compte <poissons> <moment>, jusqu'à <chiffre> les bons jours.",
            "Une loutre vit près <du_lieu>, même si peu de gens l'ont vue.",
            "Autrefois, les péniches apportaient du bois et du sel de <ville> à <ville>.",
            "Combien de temps faut-il pour ramer de <ville> jusqu'au barrage ?",
            "Les enfants pêchent <poissons> et les remettent à l'eau.",
            "Le passeur sonne une cloche quand il y a du brouillard <endroit>.",
        ),
    ),
    "ecole": (
        {
            "matiere": (
                "l'histoire",
                "la chimie",
                "la musique",
                "la géographie",
                "le latin",
                "la biologie",
                "le dessin",
            )
        },
        (
            "Mme <nom> a enseigné <matiere> pendant <nombre> ans dans la même salle.",
            "Le <jour>, les élèves de <ville> commencent par <matiere>.",
            "Au mur, il y avait une carte sur laquelle <ville> manquait.",
            "<person> détestait <matiere> et en a pourtant fait un livre.",
            "À quoi sert <matiere>, demandait un garçon au dernier rang ?",
            '"Lisez la page <chiffre> pour <jour>", a dit la maîtresse.',
            "L'école compte <chiffre> enfants et <nombre> professeurs qui savent chanter.",
            "La classe a visité <ville>, où <temps> l'attendait.",
            "Pour la fête d'été, les élèves ont construit <un_chose>.",
        ),
    ),
    "meteo": (
        {"ciel": ("un orage", "un arc-en-ciel", "une tempête", "un nuage", "une averse")},
        (
            "<jour> commencera avec <temps> au nord et finira avec <temps> au sud.",
            "Depuis <annee>, on lit chaque matin le thermomètre <endroit>.",
            "À <ville>, on n'avait pas vu <ciel> de ce genre depuis <nombre> ans.",
            "Les températures monteront jusqu'à <chiffre> degrés dans l'après-midi.",
            "Quand les hirondelles volent bas, les anciens de <ville> attendent <temps>.",
            "Les fermiers espèrent <temps> ; les touristes, bien sûr, préfèrent <temps>.",
            "Était-ce vraiment le mois <de_mois> le plus chaud depuis <annee> ?",
            "Après la tempête, <un_chose> est resté au milieu de la rue comme si de rien n'était.",
            "La météo avait promis <temps>, et elle s'est trompée une fois de plus.",
        ),
    ),
    "musique": (
        {
            "instrument": (
                "le violon",
                "la trompette",
                "la flûte",
                "l'orgue",
                "le tambour",
                "la clarinette",
                "la guitare",
            )
        },
        (
            "<person> travaille <instrument>, <person> chante, et <le_bete> quitte la pièce.",
            (
                "Le morceau commence doucement avec <instrument> et finit avec toutes les "
                "cloches de la ville."
            ),
            "Le <date>, la chorale de <ville> a chanté devant <chiffre> personnes.",
            "Personne ne sait qui a écrit cette chanson, mais tout le monde peut la siffler.",
            "À cause du mauvais temps, le concert a eu lieu près <du_lieu>.",
            "Est-ce que <instrument> est plus difficile à apprendre que <instrument> ?",
            "Après la dernière note, personne n'a bougé pendant <nombre> secondes.",
            "<metier> a retrouvé au grenier un enregistrement de <annee>.",
            "Pendant la pause, on a servi <un_plat> à tout le monde.",
        ),
    ),
    "histoire": (
        {
            "seigneur": (
                "le duc",
                "l'abbesse",
                "un riche marchand",
                "l'évêque",
                "une veuve de la côte",
            )
        },
        (
            "<ville> a été fondée en <annee>, et <seigneur> a payé la muraille.",
            "La muraille avait <nombre> mètres de haut et <nombre> portes.",
            "Du château, il ne reste que <un_lieu>.",
            "Après le grand incendie, beaucoup de familles ont quitté <ville> pour <ville>.",
            "<seigneur> a dormi ici <nombre> nuits et n'a pas aimé <le_plat>.",
            "Qui a payé le pont, la ville ou <seigneur> ?",
            "Non loin <du_lieu>, on a trouvé <chiffre> pièces de monnaie de cette époque.",
            "Le professeur <nom> discute encore de l'année exacte.",
            (
                "En <annee>, le chemin de fer a atteint <ville>, et avec lui sont venus les "
                "journaux et les dettes."
            ),
        ),
    ),
    "maison": (
        {"piece": ("la cuisine", "le salon", "la cave", "l'escalier", "l'atelier", "le grenier")},
        (
            "<le_chose> se trouve dans un coin, car personne ne veut y toucher.",
            (
                "Derrière un mur de <ville>, nous avons trouvé des lettres de <annee> et une "
                "chaussure d'enfant."
            ),
            "<parent> a acheté <le_chose> aux enchères pour <nombre> euros.",
            "Comment porter <un_chose> jusqu'au troisième étage ?",
            "Les loyers de <ville> ont augmenté de <nombre> pour cent.",
            "Quand il y a <temps>, <piece> reste l'endroit le plus agréable.",
            "Avant d'ouvrir <le_chose>, prenez une photo de chaque côté.",
            "<person> a réparé <le_chose> avec une vis et un peu de colle.",
            "<le_bete> dort <endroit>, surtout <moment>.",
        ),
    ),
}
