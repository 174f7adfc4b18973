"""German prose: noun phrases in the case in which they are used, and sentence templates by topic.

Slots: `der_x`, `den_x`, `dem_x` are nominative, accusative and dative with the definite article;
`ein_x`, `einen_x`, `einem_x` likewise with the indefinite one.
"""

OF_THINGS = (
    "alt",
    "neu",
    "klein",
    "groß",
    "schön",
    "grün",
    "still",
    "kaputt",
    "berühmt",
    "einfach",
    "schmal",
    "hell",
    "seltsam",
    "schwer",
    "lang",
)
ADJECTIVES = {
    "ding": OF_THINGS,
    "ort": OF_THINGS,
    "tier": (
        "klein",
        "groß",
        "alt",
        "jung",
        "braun",
        "schwarz",
        "weiß",
        "hungrig",
        "frech",
        "dick",
        "scheu",
        "treu",
    ),
    "speise": ("warm", "kalt", "frisch", "süß", "salzig", "einfach", "grün", "gut"),
}

# class -> (gender, noun); none of them changes its ending in the singular dative or accusative
NOUNS = {
    "ding": (
        ("m", "Schrank"),
        ("m", "Tisch"),
        ("m", "Mantel"),
        ("m", "Stuhl"),
        ("f", "Lampe"),
        ("f", "Kiste"),
        ("f", "Tasche"),
        ("f", "Uhr"),
        ("f", "Leiter"),
        ("n", "Boot"),
        ("n", "Fahrrad"),
        ("n", "Buch"),
        ("n", "Klavier"),
        ("n", "Fenster"),
    ),
    "ort": (
        ("m", "Bahnhof"),
        ("m", "Garten"),
        ("m", "Markt"),
        ("m", "Turm"),
        ("m", "Hafen"),
        ("f", "Brücke"),
        ("f", "Kirche"),
        ("f", "Schule"),
        ("f", "Mühle"),
        ("f", "Straße"),
        ("n", "Haus"),
        ("n", "Dorf"),
        ("n", "Museum"),
        ("n", "Rathaus"),
    ),
    "tier": (
        ("m", "Hund"),
        ("m", "Vogel"),
        ("m", "Igel"),
        ("m", "Fuchs"),
        ("f", "Katze"),
        ("f", "Ziege"),
        ("f", "Ente"),
        ("n", "Pferd"),
        ("n", "Huhn"),
        ("n", "Schaf"),
    ),
    "speise": (
        ("m", "Kuchen"),
        ("m", "Käse"),
        ("m", "Salat"),
        ("f", "Suppe"),
        ("f", "Torte"),
        ("f", "Soße"),
        ("n", "Brot"),
        ("n", "Gemüse"),
    ),
}
DEFINITE = {
    "der": {"m": "der", "f": "die", "n": "das"},
    "den": {"m": "den", "f": "die", "n": "das"},
    "dem": {"m": "dem", "f": "der", "n": "dem"},
}
WEAK = {
    "der": {"m": "e", "f": "e", "n": "e"},
    "den": {"m": "en", "f": "e", "n": "e"},
    "dem": {"m": "en", "f": "en", "n": "en"},
}
INDEFINITE = {
    "ein": {"m": "ein", "f": "eine", "n": "ein"},
    "einen": {"m": "einen", "f": "eine", "n": "ein"},
    "einem": {"m": "einem", "f": "einer", "n": "einem"},
}
MIXED = {
    "ein": {"m": "er", "f": "e", "n": "es"},
    "einen": {"m": "en", "f": "e", "n": "es"},
    "einem": {"m": "en", "f": "en", "n": "en"},
}


def _phrases() -> dict[str, tuple[str, ...]]:
    """Return slot -> every noun of the class with every adjective, in the slot's case."""
    slots = {}
    for articles, endings in ((DEFINITE, WEAK), (INDEFINITE, MIXED)):
        for case, article in articles.items():
            for kind, nouns in NOUNS.items():
                slots[f"{case}_{kind}"] = tuple(
                    f"{article[gender]} {adjective}{endings[case][gender]} {noun}"
                    for gender, noun in nouns
                    for adjective in ADJECTIVES[kind]
                )
    return slots


WORDS = _phrases() | {
    "person": (
        "Anna",
        "Clara",
        "Emil",
        "Friedrich",
        "Greta",
        "Hannes",
        "Ida",
        "Jakob",
        "Karl",
        "Lena",
        "Moritz",
        "Nele",
        "Otto",
        "Paula",
        "Sophie",
        "Theo",
    ),
    "name": (
        "Bergmann",
        "Dorfner",
        "Eichhorn",
        "Grünwald",
        "Hölzer",
        "Kessler",
        "Lindner",
        "Möller",
        "Schäfer",
        "Vogt",
        "Weiß",
        "Zöllner",
    ),
    "stadt": (
        "Altenbrück",
        "Birkenau",
        "Feldkirchen",
        "Grünthal",
        "Hohenstein",
        "Königsried",
        "Lindenfels",
        "Mühlbach",
        "Neustetten",
        "Sankt Veit",
        "Tannheim",
        "Wiesenburg",
    ),
    "beruf": (
        "der Bäcker",
        "der Lehrer",
        "der Arzt",
        "der Gärtner",
        "der Fischer",
        "der Maler",
        "die Lehrerin",
        "die Ärztin",
        "die Wirtin",
        "die Köchin",
        "die Försterin",
        "die Bürgermeisterin",
    ),
    "zahl": ("zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "zwölf"),
    "ziffer": ("14", "25", "37", "48", "60", "85", "120", "175", "240", "360"),
    "jahr": (
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
    "datum": (
        "3. März 1998",
        "21. Juni 2004",
        "9. Oktober 1987",
        "14. Februar 2011",
        "30. November 2016",
        "5. Mai 1979",
    ),
    "monat": (
        "Januar",
        "Februar",
        "März",
        "April",
        "Mai",
        "Juni",
        "Juli",
        "August",
        "September",
        "Oktober",
        "November",
        "Dezember",
    ),
    "tag": ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"),
    "zeit": (
        "am Morgen",
        "am Abend",
        "nach dem Essen",
        "in der Nacht",
        "am Wochenende",
        "vor Sonnenaufgang",
        "im Sommer",
        "im Winter",
        "jeden Tag",
    ),
    "platz": (
        "hinter der Kirche",
        "am Fluss",
        "am Hafen",
        "auf dem Markt",
        "unter der Burg",
        "neben dem Bahnhof",
        "am Waldrand",
        "vor der Schule",
        "im Garten",
        "in der Küche",
    ),
    "wetter": ("Regen", "Nebel", "Schnee", "Hagel", "Frost", "Sonnenschein", "Wind"),
    "verwandt": (
        "meine Großmutter",
        "mein Onkel",
        "meine Schwester",
        "unser Nachbar",
        "mein Vater",
        "eine alte Freundin",
        "meine Tante",
        "mein Bruder",
    ),
    "gruppe": (
        "der Gemeinderat",
        "der Chor",
        "die Feuerwehr",
        "der Sportverein",
        "der Lesekreis",
        "die Pfarrei",
    ),
    "urteil": (
        "ein Fehler",
        "ein Segen",
        "ein kleines Wunder",
        "ein teurer Scherz",
        "reine Geschmackssache",
        "die beste Idee seit Jahren",
    ),
}

GENERAL = (
    "Niemand in <stadt> weiß genau, wann es begann, aber die meisten nennen das Jahr <jahr>.",
    "Dr. <name> sammelt seit <zahl> Jahren Briefe, Fotos und Karten darüber.",
    "Es dauerte <zahl> Wochen, und am Ende war sogar <verwandt> dafür.",
    "Was hättest du an unserer Stelle getan?",
    "<person> hält es für Unsinn, für <person> ist es <urteil>.",
    "Am <datum> stand eine kurze Notiz darüber in der Zeitung von <stadt>.",
    "Im ersten Jahr kamen <ziffer> Besucher, im zweiten mehr als <ziffer>0.",
    (
        'Ich fragte <person> danach und bekam zur Antwort: "Komm im <monat> wieder und sieh '
        'selbst nach."'
    ),
    '"Das ist <urteil>", sagte <verwandt> und schloss die Tür.',
    "Lohnt sich die Mühe? Für die meisten von uns schon.",
    "<beruf> aus <stadt> verlangt dafür <ziffer> Euro, in <stadt> zahlt man fast das Doppelte.",
    "Wir brauchen dafür Geduld, gutes Licht und z. B. <einen_ding>.",
    "Lange standen wir im <wetter> und sagten nichts.",
    "Man vergisst leicht, dass <stadt> damals nur <ziffer> Häuser hatte.",
    "Wer helfen will, schreibt bis Ende <monat> an <person> <name>.",
    "Seit <jahr> haben <person> und <person> kein Wort mehr miteinander gesprochen.",
    "Die alte Regel gilt noch immer: zweimal messen, einmal schneiden.",
    "<platz> steht <ein_ding>, und niemand weiß, wem es gehört.",
    "Natürlich waren nicht alle in <stadt> mit <person> einverstanden.",
    "<gruppe> traf sich <zeit> und beschloss nach <zahl> Stunden, nichts zu beschließen.",
    "Es gab <zahl> Tage lang <wetter>, dann endlich <wetter>.",
    "Später zog <person> <name> nach <stadt> und sprach nie wieder davon.",
    "Frag nach <person> und bring etwas zu essen mit.",
    "<verwandt> bewahrt den Schlüssel noch immer in einer Schublade auf.",
    "In <stadt> macht man so etwas am <tag>, niemals am <tag>.",
    "Auf dem Foto sieht man <person>, <person> und <einen_tier>.",
    "Warum hat das niemand früher gesagt?",
    "<zahl> von uns gingen zu Fuß, <zahl> nahmen den Bus.",
    "Die Hälfte des Geldes kam von Freunden, die andere Hälfte brachte ein Fest ein.",
    "Nicht weit von <dem_ort> riecht es <zeit> nach Kaffee und frischem Holz.",
    "Herr <name> und Frau <name> waren sich darüber ausnahmsweise einig.",
)

TOPICS: dict[str, tuple[dict[str, tuple[str, ...]], tuple[str, ...]]] = {
    "garten": (
        {
            "pflanzen": (
                "Bohnen",
                "Möhren",
                "Rosen",
                "Zwiebeln",
                "Tulpen",
                "Erbsen",
                "Kürbisse",
                "Erdbeeren",
                "Kräuter",
                "Tomaten",
            ),
            "plage": ("Schnecken", "Mäuse", "Läuse", "Krähen", "Raupen"),
        },
        (
            "<person> sät die <pflanzen> im <monat>, sobald der Boden warm genug ist.",
            "Zwischen den Beeten steht <ein_ding>, den Rest des Platzes brauchen die <pflanzen>.",
            "Die <plage> kamen in der Nacht und ließen von der Ernte nichts übrig.",
            "Wir decken die <pflanzen> mit Stroh ab, wenn der erste Frost naht.",
            "In <stadt> sagt man, dass <pflanzen> vom <tag> niemals wachsen.",
            "Welche <pflanzen> gedeihen auch im Schatten?",
            "Grabe ein tiefes Loch, fülle es mit Kompost und warte eine Woche.",
            "Unsere <pflanzen> gewannen in <stadt> einen Preis für ihre Größe.",
            "Gegen <plage> helfen Eierschalen, Kaffee und viel Geduld.",
        ),
    ),
    "bahn": (
        {
            "personal": (
                "der Schaffner",
                "die Lokführerin",
                "der Stationsvorsteher",
                "die Weichenwärterin",
            )
        },
        (
            "Der erste Zug von <stadt> nach <stadt> fuhr am <datum> mit <ziffer> Gästen ab.",
            "<personal> pfiff, und langsam setzte sich der Zug in Bewegung.",
            "Seit <jahr> ist die Strecke zwischen <stadt> und <stadt> eingleisig.",
            '"Die Fahrkarten, bitte", sagte <personal>, doch niemand hatte eine.',
            "Im Speisewagen fanden wir <einen_ding> und eine Zeitung aus dem Jahr <jahr>.",
            (
                "Warum wurde die Nebenbahn nach <stadt> stillgelegt, obwohl sie täglich <ziffer> "
                "Menschen trug?"
            ),
            "Der Schnee hielt den Nachtzug bei <stadt> auf, und <personal> kochte Tee für alle.",
            "Vom Fenster aus sieht man <den_ort>, wenn kein Nebel liegt.",
            "Früher brauchte man <zahl> Stunden, heute sind es <zahl> Minuten weniger.",
        ),
    ),
    "küche": (
        {
            "zutat": (
                "Mehl",
                "Butter",
                "Knoblauch",
                "Zitrone",
                "Reis",
                "Pfeffer",
                "Thymian",
                "Sahne",
                "Petersilie",
                "Zucker",
            )
        },
        (
            "Gib <zutat> und <zutat> in die Pfanne und rühre <zahl> Minuten lang.",
            "Das Geheimnis ist <zutat>, aber nicht zu viel davon.",
            "<verwandt> hat nie etwas abgewogen; eine Handvoll <zutat> war eine Handvoll.",
            "Man braucht <ziffer> g <zutat>, etwas <zutat> und eine Prise Salz.",
            "<person> ließ <den_speise> anbrennen und holte <einen_speise> vom Markt.",
            "Kann man <den_speise> einfrieren? Ja, bis zu <zahl> Wochen.",
            "Zu <dem_speise> passt ein Glas kalte Milch.",
            "Probiere zuerst <den_speise>, dann erst greife zum Salz.",
            "In <stadt> isst man <den_speise> mit <zutat>, was besser schmeckt, als es klingt.",
        ),
    ),
    "fluss": (
        {"fisch": ("Forellen", "Hechte", "Barsche", "Aale", "Karpfen", "Lachse")},
        (
            "Der Fluss ist bei <stadt> <zahl> Meter tief und kälter, als man denkt.",
            "Im <monat> ziehen die <fisch> flussaufwärts.",
            "Das Hochwasser von <jahr> riss <den_ort> mit sich.",
            "<beruf> zählt <zeit> die <fisch>, an guten Tagen sind es <ziffer>.",
            "Neben <dem_ort> wohnt ein Otter, auch wenn ihn kaum jemand gesehen hat.",
            "Lastkähne brachten früher Holz und Salz von <stadt> nach <stadt>.",
            "Wie lange rudert man von <stadt> bis zum Wehr?",
            "Die Kinder angeln <fisch> und werfen sie wieder hinein.",
            "Der Fährmann läutet eine Glocke, wenn <platz> Nebel liegt.",
        ),
    ),
    "schule": (
        {"fach": ("Geschichte", "Chemie", "Musik", "Erdkunde", "Mathematik", "Latein", "Biologie")},
        (
            "Frau <name> unterrichtete <zahl> Jahre lang <fach> im selben Zimmer.",
            "Die Kinder von <stadt> haben am <tag> zuerst <fach>.",
            "Im Klassenzimmer hing eine Karte, auf der <stadt> fehlte.",
            "<person> fiel zweimal in <fach> durch und schrieb später ein Buch darüber.",
            "Wozu braucht man eigentlich <fach>?",
            '"Lest bis <tag> die Seite <ziffer>", sagte die Lehrerin.',
            "Die Schule hat <ziffer> Kinder und <zahl> Lehrkräfte, die singen können.",
            "Der Ausflug führte nach <stadt>, wo es nichts als <wetter> gab.",
            "Für das Sommerfest bauten die Schüler <einen_ding>.",
        ),
    ),
    "wetter": (
        {"himmel": ("ein Gewitter", "ein Unwetter", "eine Wolke", "eine Hitze", "ein Abendrot")},
        (
            "Der <tag> beginnt im Norden mit <wetter> und endet im Süden mit <wetter>.",
            "Seit <jahr> wird das Thermometer <platz> jeden Morgen abgelesen.",
            "So <himmel> wie diese Woche hatte man in <stadt> lange nicht gesehen.",
            "Bis zum Mittag steigen die Temperaturen auf <zahl> Grad.",
            "Wenn die Schwalben tief fliegen, rechnen die Leute in <stadt> mit <wetter>.",
            "Die Bauern hoffen auf <wetter>, die Gäste natürlich auf <wetter>.",
            "War das wirklich der wärmste <monat> seit dem Jahr <jahr>?",
            "Am <tag> fielen in <stadt> <ziffer> Millimeter Regen.",
            "Nach dem Sturm lag <ein_ding> mitten auf der Straße.",
        ),
    ),
    "musik": (
        {"instrument": ("Geige", "Trompete", "Flöte", "Orgel", "Trommel", "Klarinette", "Gitarre")},
        (
            "<person> spielt <instrument>, <person> singt, und <der_tier> verlässt den Raum.",
            "Das Stück beginnt leise mit der <instrument> und endet mit allen Glocken der Stadt.",
            "Am <datum> sang der Chor von <stadt> vor <ziffer> Menschen.",
            "Niemand weiß, wer das Lied geschrieben hat, aber jeder kann es pfeifen.",
            "Wegen <wetter> wurde das Konzert in <den_ort> verlegt.",
            "Ist die <instrument> schwerer zu lernen als die <instrument>?",
            "Nach dem letzten Ton rührte sich <zahl> Sekunden lang niemand.",
            "Auf dem Dachboden fand <beruf> eine Aufnahme aus dem Jahr <jahr>.",
            "In der Pause gab es <einen_speise> für alle.",
        ),
    ),
    "stadt": (
        {
            "herr": (
                "der Herzog",
                "die Äbtissin",
                "ein reicher Kaufmann",
                "der Bischof",
                "eine Witwe von der Küste",
            )
        },
        (
            "<stadt> wurde im Jahr <jahr> gegründet, und <herr> bezahlte die Mauer.",
            "Die Stadtmauer war <zahl> Meter hoch und hatte <zahl> Tore.",
            "Von der Burg ist nur <ein_ort> geblieben.",
            "Nach dem großen Brand zogen viele Familien von <stadt> nach <stadt>.",
            "<herr> schlief hier <zahl> Nächte und beklagte sich über <den_speise>.",
            "Wer bezahlte die Brücke, die Stadt oder <herr>?",
            "Nicht weit von <dem_ort> fand man <ziffer> Münzen aus jener Zeit.",
            "Historiker wie Prof. <name> streiten bis heute über das Jahr.",
            (
                "Im Jahr <jahr> erreichte die Eisenbahn <stadt>, und mit ihr kamen Zeitungen und "
                "Schulden."
            ),
        ),
    ),
    "haus": (
        {"raum": ("die Küche", "das Wohnzimmer", "der Keller", "das Treppenhaus", "die Werkstatt")},
        (
            "<der_ding> steht <platz>, weil niemand Lust hat, dort aufzuräumen.",
            "Hinter <dem_ding> fanden wir Briefe aus dem Jahr <jahr> und einen Kinderschuh.",
            "<verwandt> kaufte <den_ding> auf einer Auktion für <zahl> Euro.",
            "Wie trägt man <einen_ding> in den dritten Stock?",
            "Die Mieten in <stadt> stiegen um <zahl> Prozent.",
            "Bei <wetter> ist <raum> der wärmste Ort im Haus.",
            "Auf der Treppe roch es nach <wetter> und nassem Hund.",
            "Bevor man <den_ding> öffnet, macht man am besten ein Foto.",
            "<person> reparierte <den_ding> mit einer Schraube und etwas Leim.",
            "<der_tier> schläft neben <dem_ding>, am liebsten <zeit>.",
        ),
    ),
}
