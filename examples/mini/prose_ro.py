"""Romanian prose: noun phrases in the form in which they are used, sentence templates by topic.

Slots: `art_x` is the articulated phrase, `un_x` the one with the indefinite article, `gen_x` the
articulated genitive and dative.
"""

# masculine and neuter, feminine, feminine genitive; all follow their noun
OF_THINGS = (
    ("vechi", "veche", "vechi"),
    ("nou", "nouă", "noi"),
    ("frumos", "frumoasă", "frumoase"),
    ("mic", "mică", "mici"),
    ("mare", "mare", "mari"),
    ("alb", "albă", "albe"),
    ("liniștit", "liniștită", "liniștite"),
    ("îngust", "îngustă", "înguste"),
    ("luminos", "luminoasă", "luminoase"),
    ("simplu", "simplă", "simple"),
    ("ciudat", "ciudată", "ciudate"),
    ("celebru", "celebră", "celebre"),
    ("roșu", "roșie", "roșii"),
    ("curat", "curată", "curate"),
    ("greu", "grea", "grele"),
    ("părăsit", "părăsită", "părăsite"),
)
ADJECTIVES = {
    "lucru": OF_THINGS,
    "loc": OF_THINGS,
    "animal": (
        ("mic", "mică", "mici"),
        ("mare", "mare", "mari"),
        ("alb", "albă", "albe"),
        ("negru", "neagră", "negre"),
        ("bătrân", "bătrână", "bătrâne"),
        ("flămând", "flămândă", "flămânde"),
        ("blând", "blândă", "blânde"),
        ("curios", "curioasă", "curioase"),
        ("leneș", "leneșă", "leneșe"),
    ),
    "fel": (
        ("cald", "caldă", "calde"),
        ("rece", "rece", "reci"),
        ("proaspăt", "proaspătă", "proaspete"),
        ("dulce", "dulce", "dulci"),
        ("sărat", "sărată", "sărate"),
        ("simplu", "simplă", "simple"),
        ("gros", "groasă", "groase"),
    ),
}

# gender, bare, articulated, articulated genitive
NOUNS = {
    "lucru": (
        ("n", "scaun", "scaunul", "scaunului"),
        ("n", "dulap", "dulapul", "dulapului"),
        ("n", "ceas", "ceasul", "ceasului"),
        ("n", "pian", "pianul", "pianului"),
        ("n", "coș", "coșul", "coșului"),
        ("f", "masă", "masa", "mesei"),
        ("f", "lampă", "lampa", "lămpii"),
        ("f", "barcă", "barca", "bărcii"),
        ("f", "bicicletă", "bicicleta", "bicicletei"),
        ("f", "ușă", "ușa", "ușii"),
        ("f", "cutie", "cutia", "cutiei"),
        ("f", "sticlă", "sticla", "sticlei"),
        ("f", "scară", "scara", "scării"),
        ("f", "haină", "haina", "hainei"),
    ),
    "loc": (
        ("n", "pod", "podul", "podului"),
        ("n", "sat", "satul", "satului"),
        ("n", "turn", "turnul", "turnului"),
        ("n", "muzeu", "muzeul", "muzeului"),
        ("n", "port", "portul", "portului"),
        ("n", "drum", "drumul", "drumului"),
        ("f", "grădină", "grădina", "grădinii"),
        ("f", "gară", "gara", "gării"),
        ("f", "biserică", "biserica", "bisericii"),
        ("f", "școală", "școala", "școlii"),
        ("f", "piață", "piața", "pieței"),
        ("f", "moară", "moara", "morii"),
        ("f", "casă", "casa", "casei"),
        ("f", "stradă", "strada", "străzii"),
    ),
    "animal": (
        ("m", "câine", "câinele", "câinelui"),
        ("m", "cal", "calul", "calului"),
        ("m", "măgar", "măgarul", "măgarului"),
        ("m", "iepure", "iepurele", "iepurelui"),
        ("f", "pisică", "pisica", "pisicii"),
        ("f", "capră", "capra", "caprei"),
        ("f", "rață", "rața", "raței"),
        ("f", "găină", "găina", "găinii"),
        ("f", "vulpe", "vulpea", "vulpii"),
    ),
    "fel": (
        ("f", "supă", "supa", "supei"),
        ("f", "plăcintă", "plăcinta", "plăcintei"),
        ("f", "salată", "salata", "salatei"),
        ("f", "prăjitură", "prăjitura", "prăjiturii"),
        ("n", "tort", "tortul", "tortului"),
        ("n", "sos", "sosul", "sosului"),
    ),
}


def _phrases() -> dict[str, tuple[str, ...]]:
    """Return slot -> every noun of the class with every adjective, in the slot's form."""
    slots: dict[str, list[str]] = {}
    for kind, nouns in NOUNS.items():
        for gender, bare, articulated, genitive in nouns:
            for masculine, feminine, feminine_genitive in ADJECTIVES[kind]:
                is_feminine = gender == "f"
                adjective = feminine if is_feminine else masculine
                in_genitive = feminine_genitive if is_feminine else masculine
                article = "o" if is_feminine else "un"
                slots.setdefault(f"un_{kind}", []).append(f"{article} {bare} {adjective}")
                slots.setdefault(f"art_{kind}", []).append(f"{articulated} {adjective}")
                slots.setdefault(f"gen_{kind}", []).append(f"{genitive} {in_genitive}")
    return {name: tuple(phrases) for name, phrases in slots.items()}


WORDS = _phrases() | {
    "person": (
        "Ana",
        "Elena",
        "Ioana",
        "Maria",
        "Irina",
        "Sorina",
        "Țuța",
        "Ștefania",
        "Andrei",
        "Ion",
        "Mihai",
        "Radu",
        "Șerban",
        "Toma",
        "Vasile",
        "Dumitru",
    ),
    "nume": (
        "Ardeleanu",
        "Bălan",
        "Cernea",
        "Dobrescu",
        "Lupșa",
        "Munteanu",
        "Pădureanu",
        "Rotaru",
        "Stănescu",
        "Țurcanu",
        "Văcărescu",
        "Șerbănescu",
    ),
    "oras": (
        "Alunișu",
        "Brădeni",
        "Călinești",
        "Dealu Frumos",
        "Fântânele",
        "Izvoarele",
        "Lunca Mare",
        "Poiana Albă",
        "Râușor",
        "Stejaru",
        "Valea Rece",
        "Șipotele",
    ),
    "meserie": (
        "brutarul",
        "profesorul",
        "doctorul",
        "grădinarul",
        "pescarul",
        "poștașul",
        "învățătoarea",
        "bucătăreasa",
        "bibliotecara",
        "primărița",
    ),
    "numar": ("două", "trei", "patru", "cinci", "șase", "șapte", "opt", "nouă", "zece"),
    "cifra": ("14", "15", "16", "17", "18", "19", "112", "115", "218", "319"),
    "an": (
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
    "data": (
        "3 martie 1998",
        "21 iunie 2004",
        "9 octombrie 1987",
        "14 februarie 2011",
        "30 noiembrie 2016",
        "5 mai 1979",
    ),
    "luna": (
        "ianuarie",
        "februarie",
        "martie",
        "aprilie",
        "mai",
        "iunie",
        "iulie",
        "august",
        "septembrie",
        "octombrie",
        "noiembrie",
        "decembrie",
    ),
    "zi": ("luni", "marți", "miercuri", "joi", "vineri", "sâmbătă", "duminică"),
    "timp": (
        "dimineața",
        "seara",
        "după prânz",
        "noaptea",
        "înainte de răsărit",
        "vara",
        "iarna",
        "în fiecare zi",
    ),
    "unde": (
        "în spatele bisericii",
        "lângă râu",
        "în port",
        "în piață",
        "sub cetate",
        "lângă gară",
        "la marginea pădurii",
        "în fața școlii",
        "în grădină",
        "în bucătărie",
    ),
    "vreme": ("ploaie", "ceață", "zăpadă", "grindină", "ger", "vânt", "soare"),
    "ruda": (
        "bunica mea",
        "unchiul meu",
        "sora mea",
        "vecinul nostru",
        "tatăl meu",
        "o prietenă veche",
        "mătușa mea",
        "fratele meu",
    ),
    "grup": (
        "consiliul local",
        "corul",
        "clubul de lectură",
        "clubul de șah",
        "parohia",
        "asociația părinților",
    ),
    "parere": (
        "o greșeală",
        "o binecuvântare",
        "o mică minune",
        "o glumă scumpă",
        "o chestiune de gust",
        "cea mai bună idee din ultimii ani",
    ),
}

GENERAL = (
    "Nimeni din <oras> nu știe exact când a început, dar cei mai mulți vorbesc despre anul <an>.",
    "Dl. <nume> adună de <numar> luni scrisori, fotografii și hărți despre acest lucru.",
    "A durat <numar> săptămâni, iar la sfârșit până și <ruda> și-a schimbat părerea.",
    "Ce ați fi făcut dumneavoastră în locul nostru?",
    "Pentru <person> este <parere>, iar pentru <person> este <parere>.",
    "La <data>, ziarul din <oras> a publicat o scurtă notă despre asta.",
    "În primul an au venit <cifra> vizitatori, iar în al doilea mult mai mulți.",
    (
        'Am întrebat-o pe bunica, iar răspunsul ei a fost: "Întoarce-te în <luna> și vei vedea '
        'singur."'
    ),
    '"Este <parere>", a spus <ruda> și a închis ușa.',
    "Merită osteneala? Pentru cei mai mulți dintre noi, da.",
    "<meserie> din <oras> cere <cifra> lei pentru asta, aproape dublu față de <oras>.",
    "Avem nevoie de răbdare, de lumină bună și, de exemplu, de <un_lucru>.",
    "Am așteptat mult timp fără să spunem nimic, deși era <vreme>.",
    "Uităm adesea că <oras> avea atunci doar <cifra> case.",
    "Cine vrea să ajute îi poate scrie familiei <nume> până la sfârșitul lunii <luna>.",
    "Din <an>, <person> și <person> nu și-au mai vorbit.",
    "Regula veche este încă bună: măsoară de două ori și taie o singură dată.",
    "<unde> se află <un_lucru> și nimeni nu știe al cui este.",
    "Desigur, nu toată lumea din <oras> a fost de acord cu <person>.",
    "<grup> a discutat <numar> ore și a hotărât să nu hotărască nimic.",
    "Timp de <numar> zile a fost <vreme>, apoi, în sfârșit, <vreme>.",
    "Mai târziu, <person> <nume> a plecat la <oras> și nu a mai vorbit niciodată despre asta.",
    "Întrebați de <person> și aduceți ceva de mâncare.",
    "<ruda> mai păstrează cheia într-un sertar, pentru orice eventualitate.",
    "În <oras>, asemenea lucruri se fac <zi>, niciodată <zi>.",
    "În fotografie se văd <person>, <person> și <un_animal>.",
    "De ce nu a spus nimeni asta mai devreme?",
    "Unii au mers pe jos, alții au luat autobuzul, iar <person> a rămas acasă.",
    "Jumătate din bani a venit de la prieteni, cealaltă jumătate de la o petrecere.",
    "Doamna <nume> și domnul <nume> au fost de acord, ceea ce se întâmplă rar.",
    "Nu departe de <art_loc> miroase <timp> a cafea și a lemn proaspăt.",
)

TOPICS: dict[str, tuple[dict[str, tuple[str, ...]], tuple[str, ...]]] = {
    "gradina": (
        {
            "plante": (
                "fasolea",
                "varza",
                "ceapa",
                "salata",
                "mazărea",
                "pătrunjelul",
                "usturoiul",
                "busuiocul",
            ),
            "daunatori": ("melcii", "șoarecii", "păduchii verzi", "ciorile", "omizile"),
        },
        (
            "<person> seamănă <plante> în <luna>, de îndată ce pământul este destul de cald.",
            "Nu udați niciodată <plante> la amiază, pentru că picăturile ard frunzele.",
            "Noaptea au venit <daunatori> și nu au lăsat aproape nimic.",
            "Acoperim <plante> cu paie când se apropie primul îngheț.",
            "În <oras> se spune că <plante> de <zi> nu crește niciodată.",
            "Crește oare <plante> și la umbră?",
            "Săpați o groapă adâncă, umpleți-o cu compost și așteptați o săptămână.",
            (
                "Împotriva lor ajută cojile de ouă, cafeaua și multă răbdare, chiar dacă "
                "<daunatori> se întorc."
            ),
            "În fundul grădinii, <un_lucru> așteaptă primăvara.",
        ),
    ),
    "trenuri": (
        {"angajat": ("conductorul", "mecanicul", "șeful de gară", "casiera")},
        (
            "Primul tren din <oras> spre <oras> a plecat la <data> cu <cifra> călători.",
            "<angajat> a fluierat, iar trenul a pornit încet.",
            "Din <an>, linia dintre <oras> și <oras> are un singur fir.",
            '"Biletele, vă rog", a spus <angajat>, dar nimeni nu avea unul.',
            "În vagonul restaurant am găsit <un_lucru> și un ziar din <an>.",
            "De ce a fost închisă linia spre <oras>, care ducea zilnic <cifra> oameni?",
            "Zăpada a oprit trenul de noapte lângă <oras>, iar <angajat> a făcut ceai pentru toți.",
            "De la fereastră se vede <art_loc>, dacă nu este ceață.",
            "Altădată drumul dura <numar> ore, acum durează cu <numar> minute mai puțin.",
        ),
    ),
    "bucatarie": (
        {
            "ingredient": (
                "făina",
                "untul",
                "usturoiul",
                "lămâia",
                "orezul",
                "piperul",
                "cimbrul",
                "smântâna",
                "pătrunjelul",
                "zahărul",
            )
        },
        (
            (
                "Puneți <ingredient> în tigaie, adăugați <ingredient> și amestecați timp de "
                "<numar> minute."
            ),
            "Secretul este <ingredient>, dar nu prea mult.",
            "<ruda> nu cântărea niciodată <ingredient>; o mână era o mână.",
            "<person> a ars <art_fel> și a servit <un_fel> în loc.",
            "Se poate congela <art_fel>? Da, până la <numar> săptămâni.",
            "Cu <art_fel> se bea un pahar de lapte rece.",
            "Gustați mai întâi <art_fel> și abia apoi adăugați <ingredient>.",
            "În <oras> se mănâncă <art_fel> cu ceapă, ceea ce este mai bun decât pare.",
            "Lăsați <art_fel> să se odihnească <cifra> minute înainte de a servi.",
        ),
    ),
    "rau": (
        {"pesti": ("păstrăvii", "bibanii", "crapii", "somnii", "cleanii")},
        (
            "Râul are la <oras> o adâncime de <numar> picioare și este mai rece decât ați crede.",
            "În <luna>, <pesti> urcă spre izvoare.",
            "Inundația din <an> a luat cu ea <art_loc>.",
            "<meserie> numără <timp> <pesti>, în zilele bune până la <cifra>.",
            "Lângă <art_loc> trăiește o vidră, deși puțini oameni au văzut-o.",
            "Altădată, plutele aduceau lemn și sare din <oras> la <oras>.",
            "Cât durează să vâslești de la <oras> până la baraj?",
            "Copiii prind <pesti> și îi aruncă înapoi în apă.",
            "Podarul sună un clopot când este <vreme> <unde>.",
        ),
    ),
    "scoala": (
        {
            "materie": (
                "istoria",
                "chimia",
                "muzica",
                "geografia",
                "matematica",
                "biologia",
                "desenul",
            )
        },
        (
            "Doamna <nume> a predat <numar> decenii în aceeași sală, iar materia ei era <materie>.",
            "Elevii din <oras> încep ziua de <zi> cu cântece și poezii.",
            "Pe perete era o hartă pe care <oras> lipsea.",
            "<person> nu iubea deloc <materie> și totuși a scris mai târziu o carte despre ea.",
            "La ce folosește oare <materie>?",
            '"Citiți pagina <cifra> până <zi>", a spus învățătoarea.',
            "Școala are <cifra> copii și <numar> profesoare care știu să cânte.",
            "Excursia a ajuns la <oras>, unde era numai <vreme>.",
            "Pentru serbarea de vară, elevii au construit <un_lucru>.",
        ),
    ),
    "vremea": (
        {"cer": ("o furtună", "un curcubeu", "un nor", "o ploaie")},
        (
            "Ziua de <zi> începe în nord cu <vreme> și se încheie în sud cu <vreme>.",
            "Din <an>, termometrul <unde> este citit în fiecare dimineață.",
            "De <numar> luni nu se mai văzuse <cer> deasupra orașului <oras>.",
            "Temperaturile vor crește până la <cifra> grade la amiază.",
            "Când rândunelele zboară jos, bătrânii din <oras> așteaptă <vreme>.",
            "Țăranii speră la <vreme>; turiștii, desigur, preferă <vreme>.",
            "A fost oare cu adevărat cea mai caldă lună <luna> din <an> încoace?",
            "După furtună, <un_lucru> a rămas în mijlocul drumului.",
            "Prognoza promisese <vreme> și s-a înșelat încă o dată.",
        ),
    ),
    "muzica": (
        {"instrument": ("vioara", "trompeta", "fluierul", "orga", "toba", "clarinetul", "chitara")},
        (
            "<person> acordează <instrument>, <person> cântă, iar <art_animal> iese din cameră.",
            "Piesa începe încet, cu <instrument>, și se termină cu toate clopotele orașului.",
            "La <data>, corul din <oras> a cântat în fața a <cifra> oameni.",
            "Nimeni nu știe cine a scris cântecul, dar toți îl pot fluiera.",
            "Din cauza vremii, concertul s-a ținut lângă <art_loc>.",
            "Se învață oare <instrument> mai greu decât <instrument>?",
            "După ultima notă, nimeni nu s-a mișcat timp de <numar> secunde.",
            "<meserie> a găsit în pod o înregistrare din <an>.",
            "În pauză s-a servit <un_fel> pentru toată lumea.",
        ),
    ),
    "istorie": (
        {
            "stapan": (
                "voievodul",
                "stareța",
                "un negustor bogat",
                "episcopul",
                "o văduvă de la mare",
            )
        },
        (
            "<oras> a fost întemeiat în <an>, iar <stapan> a plătit zidul.",
            "Zidul avea <numar> coturi înălțime și <numar> porți.",
            "Din cetate a rămas doar <un_loc>.",
            "După marele incendiu, multe familii au plecat din <oras> la <oras>.",
            "<stapan> a dormit aici <numar> nopți și s-a plâns de <art_fel>.",
            "Cine a plătit podul, orașul sau <stapan>?",
            "În apropierea <gen_loc> s-au găsit <cifra> monede din acea vreme.",
            "Istoricii se ceartă și astăzi asupra anului exact.",
            "În <an>, calea ferată a ajuns la <oras> și a adus ziare și datorii.",
        ),
    ),
    "casa": (
        {"camera": ("bucătăria", "sufrageria", "pivnița", "scara", "mansarda")},
        (
            "<art_lucru> stă într-un colț, pentru că nimeni nu vrea să umble acolo.",
            "În spatele <gen_lucru> am găsit scrisori din <an> și un pantof de copil.",
            "<ruda> a cumpărat <art_lucru> la licitație pentru <cifra> lei.",
            "Cum se duce <un_lucru> până la etajul trei?",
            "Chiriile din <oras> au crescut cu <cifra> la sută.",
            "Când este <vreme>, <camera> este cel mai plăcut loc din casă.",
            "Înainte de a deschide <art_lucru>, faceți o fotografie din fiecare parte.",
            "<person> a reparat <art_lucru> cu un șurub și puțin clei.",
            "<art_animal> doarme <unde>, mai ales <timp>.",
        ),
    ),
}
