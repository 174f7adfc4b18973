"""A little Spanish, Italian and Polish: pages that the corpus does not want."""

OTHER: dict[str, tuple[dict[str, tuple[str, ...]], tuple[str, ...]]] = {
    "es": (
        {
            "quien": (
                "mi abuela", "el panadero", "la maestra", "nuestro vecino", "el médico",
                "una amiga",
            ),
            "que": (
                "el puente", "la plaza", "el mercado", "la estación", "el jardín", "la escuela",
            ),
            "dia": ("el lunes", "el martes", "el jueves", "el sábado", "el domingo"),
        },
        (
            "<dia> por la mañana <quien> salió de casa muy temprano y no dijo nada a nadie.",
            "Todavía me acuerdo de <que> y de las tardes largas del verano.",
            "¿Quién podía imaginar que <quien> volvería tan pronto?",
            "En invierno hace mucho frío, pero los niños siguen jugando cerca del río.",
            "<quien> compró pan, queso y unas manzanas para la cena.",
            "Nadie sabe cuándo se construyó <que>, aunque hay quien dice que fue hace dos siglos.",
            "Después de la lluvia, las calles del pueblo huelen a tierra mojada.",
            "Me dijo <quien> que <que> estaría cerrada hasta <dia>.",
            "Hay que tener paciencia, porque las cosas buenas llegan despacio.",
            "Cuando llegamos, <quien> ya estaba esperando con una sonrisa.",
        ),
    ),
    "it": (
        {
            "chi": (
                "mia nonna", "il fornaio", "la maestra", "il nostro vicino", "il medico",
                "una vecchia amica",
            ),
            "cosa": (
                "il ponte", "la piazza", "il mercato", "la stazione", "il giardino", "la scuola",
            ),
            "giorno": ("lunedì", "martedì", "giovedì", "sabato", "domenica"),
        },
        (
            "<giorno> mattina <chi> uscì di casa molto presto senza dire niente a nessuno.",
            "Mi ricordo ancora bene di quelle lunghe serate d'estate.",
            "Chi poteva immaginare che <chi> sarebbe tornato così presto?",
            "D'inverno fa molto freddo, ma i bambini continuano a giocare vicino al fiume.",
            "<chi> comprò il pane, il formaggio e qualche mela per la cena.",
            "Nessuno sa quando fu costruito il palazzo, ma <cosa> è ancora più antica.",
            "Dopo la pioggia le strade del paese profumano di terra bagnata.",
            "Secondo <chi>, bisogna aspettare fino a <giorno> per vedere la festa.",
            "Ci vuole pazienza, perché le cose belle arrivano piano piano.",
            "Quando siamo arrivati, <chi> ci aspettava già con un sorriso.",
        ),
    ),
    "pl": (
        {
            "kto": (
                "moja babcia", "piekarz", "nauczycielka", "nasz sąsiad", "lekarz",
                "dawna przyjaciółka",
            ),
            "co": ("most", "rynek", "dworzec", "ogród", "kościół"),
            "kiedy": ("w poniedziałek", "we wtorek", "w czwartek", "w sobotę", "w niedzielę"),
        },
        (
            "<kiedy> rano <kto> bardzo wcześnie idzie do miasta i nikomu nic nie mówi.",
            "Wciąż pamiętam te długie letnie wieczory nad rzeką.",
            "Kto mógł przypuszczać, że <kto> wróci tak szybko?",
            "Zimą jest bardzo zimno, ale dzieci dalej bawią się koło młyna.",
            "<kto> kupuje chleb, ser i kilka jabłek na kolację.",
            "Nikt nie wie, kiedy zbudowano <co>, choć niektórzy mówią o dwóch wiekach.",
            "Po deszczu ulice miasteczka pachną mokrą ziemią.",
            "Trzeba poczekać <kiedy> do południa, żeby zobaczyć <co> w słońcu.",
            "Potrzeba cierpliwości, bo dobre rzeczy przychodzą powoli.",
            "Kiedy przyjechaliśmy, <kto> już czeka z uśmiechem.",
        ),
    ),
}  # fmt: skip
