"""English prose: words and sentence templates by topic."""

from words import ENGLISH

WORDS = ENGLISH | {
    "adj": (
        "old", "quiet", "narrow", "bright", "simple", "strange", "famous", "broken", "friendly",
        "heavy", "gentle", "curious", "empty", "modern", "crooked", "pleasant",
    ),
    "feeling": ("pride", "relief", "surprise", "doubt", "pleasure", "patience", "envy", "hope"),
    "weather": ("rain", "fog", "snow", "hail", "strong wind", "frost", "sunshine", "thunder"),
    "place": (
        "behind the church", "near the river", "at the harbour", "on the market square",
        "below the castle", "next to the station", "at the edge of the forest", "by the old wall",
        "in the upper village", "on the other side of the valley",
    ),
    "time": (
        "in the morning", "after lunch", "late in the evening", "before sunrise", "at noon",
        "during the night", "at the weekend", "towards the end of the week",
    ),
    "count": ("14", "25", "37", "48", "60", "85", "120", "175", "240", "360", "415", "900"),
    "small": ("2", "3", "4", "5", "6", "8", "12", "15"),
    "date": (
        "3 March 1998", "21 June 2004", "9 October 1987", "14 February 2011", "30 November 2016",
        "5 May 1979", "17 August 2001", "2 January 2019",
    ),
    "title": ("Dr.", "Mrs.", "Mr.", "Prof."),
    "relative": (
        "my grandmother", "my uncle", "my sister", "our neighbour", "my cousin", "my father",
        "an old friend", "my aunt",
    ),
    "group": (
        "the council", "the choir", "the fire brigade", "the sports club", "the reading circle",
        "the parish", "the school board", "the museum friends",
    ),
    "opinion": (
        "a mistake", "a blessing", "a small miracle", "an expensive joke", "good news",
        "a matter of taste", "long overdue", "the best idea in years",
    ),
    "material": ("oak", "brick", "glass", "iron", "sandstone", "copper", "clay", "pine"),
    "virtue": (
        "patience", "a sharp knife", "good light", "a steady hand", "plenty of time", "dry weather",
        "two helpers", "a little luck",
    ),
}  # fmt: skip

GENERAL = (
    (
        "Nobody in <town> remembers exactly when it began, but most people say that it was "
        "around <year>."
    ),
    "<title> <surname> has collected letters, photographs and maps about it for <number> years.",
    "It took <number> weeks, and by the end even <relative> had changed sides.",
    "What would you have done in our place?",
    "<person> says it was <opinion>; <person> thinks it was <opinion>.",
    "The answer, as so often, depends on <virtue>.",
    "On <date> the newspaper of <town> printed a short notice about it on page <small>.",
    "Some of it is true, some of it was added later, and the rest belongs to the inn.",
    "There were <count> visitors in the first year and more than <count>0 in the second.",
    "I asked <relative> for advice, and the reply was short: wait until <month>.",
    "Things changed when <group> bought the <thing> <place>.",
    "By the way, the <adj> <thing> on the old postcard was never <colour>.",
    "We need three things for this, i.e. <virtue>, <virtue> and <virtue>.",
    'When I asked <person> about it, the answer was, "Come back in <month> and see for yourself."',
    '"That is <opinion>," said <relative>, and closed the door.',
    '<person> laughed and said: "You should have been here in <year>."',
    "Is it worth the trouble? For most of us it is.",
    "The <job> of <town> charges <small> dollars for it, the one in <town> almost twice as much.",
    "In <month> the <adj> road to <town> is closed, so take the train instead.",
    "We stood there in the <weather> and said nothing for a while.",
    "People often forget that <town> had only <count> houses at that time.",
    "A <colour> sign <place> shows the way, although <weather> has taken half of its letters.",
    "Anyone who wants to help can write to <person> <surname> until the end of <month>.",
    "At first we felt <feeling>, then <feeling>, and in the end only <feeling>.",
    "It is no secret that <person> and <person> have not spoken since <year>.",
    "The old rule still holds: measure twice, cut once, and never trust <a adj> ladder.",
    "Last <season> we tried it again with <number> friends and <a adj> <thing>.",
    "This page was first written on <date> and has been corrected many times since.",
    "My own notes from that <season> fill <number> small books, most of them wet.",
    "Of course, not everybody in <town> agreed with <person>.",
    "The <animal> of the <job> slept through all of it.",
    "If you come by train, leave at <town> and walk <small> kilometres along the river.",
    "<group> met <time> and decided, after <small> hours, to decide nothing.",
    "It cost about $<count>, which was a lot of money for <a job> in those days.",
    "Do not believe the <adj> stories about the <thing>; the truth is better.",
    "For <number> days there was <weather>, and then, all at once, <weather>.",
    "Later, <person> <surname> became <a job> in <town> and never mentioned it again.",
    "The second part of this story begins <place>, with <a adj> <animal> and a letter.",
    "Ask for <person> at the <colour> door, and bring some <food>.",
    "There is <a adj> bench <place> where you can rest and look at the <thing>.",
    "Half of the money came from <group>, the other half from the sale of <food>.",
    "<relative> still keeps the <colour> <thing> key in a drawer, just in case.",
    "We learned that <virtue> and <virtue> matter more than the newest tools.",
    "In <town>, <day> is the day for such things, and nobody would try it on <day>.",
    "The photograph shows, from left to right, <person>, <person>, the <job> and <a animal>.",
    "Why did nobody say so before?",
    "To be fair, <relative> had warned us about the <weather>.",
    (
        "<number> of us went on foot, <number> took the bus, and <person> stayed at home with "
        "the <animal>."
    ),
    "Not far away, <place>, you will find <a adj> <thing> made of <material>.",
    "The smell of <food> came out of every window.",
)  # fmt: skip

TOPICS: dict[str, tuple[dict[str, tuple[str, ...]], tuple[str, ...]]] = {
    "gardening": (
        {
            "plant": (
                "beans", "carrots", "roses", "onions", "tulips", "lettuce", "peas", "pumpkins",
                "strawberries", "leeks", "herbs", "tomatoes",
            ),
            "tool": (
                "spade", "rake", "hoe", "watering can", "fork", "pair of shears", "wheelbarrow",
            ),
            "pest": ("slugs", "snails", "mice", "aphids", "crows", "moles"),
        },
        (
            "<person> sows <plant> in <month>, as soon as the soil is warm enough to sit on.",
            "Between the rows of <plant> and <plant> there is just enough room for <a tool>.",
            "Never water <plant> at noon, because the drops burn the leaves.",
            "The <pest> came during the night and left nothing of the <plant> but the stalks.",
            "A good <tool> costs more, but it will outlive <number> cheap ones.",
            "We cover the <plant> with straw when the first frost is near.",
            "In <town> they say that <plant> planted on <day> never grow.",
            "Which <plant> do well in the shade of <a adj> wall?",
            "Dig a hole as deep as your <tool>, fill it with compost, and wait a week.",
            "My neighbour keeps <pest> away with eggshells, coffee and <feeling>.",
            "By <month> the <plant> had climbed over the fence and into the <adj> <thing>.",
            "The <colour> <plant> won a prize at the show in <town>, e.g. for their size.",
            "Cut the <plant> back hard in <season>, even if it hurts.",
        ),
    ),
    "trains": (
        {
            "part": (
                "engine", "dining car", "signal box", "last carriage", "goods wagon", "platform",
                "waiting room", "boiler",
            ),
            "staff": (
                "the guard", "the driver", "the station master", "the ticket clerk",
                "the signalman",
            ),
        },
        (
            "The first train from <town> to <town> left on <date> with <count> guests on board.",
            "<staff> blew the whistle, and the <part> began to move.",
            "Since <year> the line has been single track between <town> and <town>.",
            "Every <day> the slow train waits <small> minutes for the express.",
            "The <part> was rebuilt by volunteers, who needed <number> years for it.",
            '"Tickets, please," said <staff>, but nobody had one.',
            "A journey that once took <small> hours now takes <number> minutes less.",
            "Steam rose from the <part> and hid the whole platform.",
            "Why was the branch to <town> closed, although it carried <count> people a day?",
            "<person> knows every timetable since <year> by heart.",
            "The bridge over the river carries <count> tons, i.e. two engines and a wagon.",
            "In the <part> we found a newspaper from <year> and half a loaf of <food>.",
            "Snow stopped the night train near <town>, and <staff> made tea for everybody.",
        ),
    ),
    "cooking": (
        {
            "item": (
                "flour", "butter", "garlic", "lemon", "rice", "pepper", "thyme", "mushrooms",
                "eggs", "cream", "parsley", "potatoes",
            ),
            "pot": ("pan", "iron pot", "bowl", "baking tray", "kettle"),
            "dish": ("pancake", "dumpling", "omelette", "salad", "pudding", "roast", "pie"),
        },
        (
            "Put the <item> and the <item> into <a adj> <pot> and stir for <number> minutes.",
            "The secret of a good <dish> is <item>, and not too much of it.",
            "<relative> never measured the <item>; a handful was a handful.",
            "Add the <item> slowly, or else the <dish> will fall apart.",
            (
                "You need: <count> g of <item>, <small> spoons of <item>, some <item> and a "
                "little salt."
            ),
            "Let the <dish> rest in the <pot> while you wash the <item>.",
            "In <town> they eat <food> with <item>, which sounds worse than it is.",
            "Can you freeze <a dish> with <item>? Yes, for up to <number> weeks.",
            "If the <pot> is too hot, the <item> turns bitter.",
            "<person> burned the <dish> and served <food> instead.",
            "Serve it warm, with <item> on top and a glass of cold milk.",
            "The market <place> sells the best <item> on <day>.",
            "Taste it, then taste it again, and only then reach for the <item>.",
        ),
    ),
    "rivers": (
        {
            "water": ("stream", "canal", "lake", "weir", "ferry", "dam", "lock", "ford"),
            "fish": ("trout", "pike", "perch", "eels", "salmon", "carp"),
        },
        (
            "The river is <small> metres deep below the <water>, and colder than you think.",
            "In <month> the <fish> swim up to the old <water> to spawn.",
            "The flood of <year> carried away the <water> and <count> sheep.",
            "<person> counts the <fish> for the water board, <count> of them on a good day.",
            "You can rent a boat <place>, but not when there is <weather>.",
            (
                "Where the two rivers meet, the water is <colour> on one side and <colour> on "
                "the other."
            ),
            "The <water> was built in <year> to keep the mill running in dry summers.",
            "An otter lives under the <water>, although few people have seen it.",
            "Barges once brought <food> and timber from <town> to the sea.",
            "How long does it take to row from <town> to the <water>?",
            "After <number> dry weeks you could walk across the <water> without getting wet.",
            "Children fish for <fish> from the bridge and throw them back again.",
            "The ferryman rings <a adj> bell when there is fog on the river.",
        ),
    ),
    "school": (
        {
            "subject": (
                "history", "chemistry", "music", "geography", "mathematics", "drawing", "Latin",
                "biology",
            ),
            "room": (
                "classroom", "library", "gym", "workshop", "laboratory", "school yard", "canteen",
            ),
        },
        (
            "<title> <surname> taught <subject> in the same <room> for <number> years.",
            "The pupils of <town> start at eight o'clock and have <subject> first.",
            "In the <room> there was <a adj> map on which <town> was missing.",
            "<person> failed <subject> twice and later wrote a book about it.",
            "What is the use of <subject>, asked the boy in the last row?",
            "For the summer party, the <room> was painted <colour>.",
            "Homework in <subject> should not take longer than <count> minutes.",
            (
                '"Read page <small> until <day>," said the teacher, "and do not forget your '
                '<thing> drawings."'
            ),
            "There are <count> children in the school and <number> teachers who can sing.",
            "The school trip went to <town>, where it met <weather>.",
            "Since <year>, girls and boys share the <room>.",
            "The exam in <subject> has three parts, i.e. a talk, a test and <a adj> task.",
            "A new <room> would cost <count>,000 dollars, which <group> does not have.",
        ),
    ),
    "weather": (
        {
            "sky": ("cloud", "rainbow", "storm", "drizzle", "mist", "heat", "shower", "breeze"),
            "device": (
                "thermometer", "rain gauge", "barometer", "weather vane", "satellite picture",
            ),
        },
        (
            "<day> will begin with <weather> in the north and end with <weather> in the south.",
            "The <device> <place> has been read every morning since <year>.",
            "A <sky> like this had not been seen over <town> for <number> years.",
            "Temperatures will rise to <small> degrees by noon and fall again after dark.",
            "When the swallows fly low, old people in <town> expect <weather>.",
            "The <sky> moved slowly across the valley and dissolved above <town>.",
            "How can <a sky> be <colour> at night?",
            "In <month> <year>, <count> millimetres of rain fell within a single day.",
            "The <device> showed nothing unusual, and yet <person> closed the shutters.",
            "After the <sky>, the streets were full of leaves and broken tiles.",
            "Farmers hope for <weather>; tourists, of course, hope for <weather>.",
            "It was the warmest <month> since the <device> was invented.",
            "The forecast was right about the <sky> but wrong about the <weather>.",
        ),
    ),
    "music": (
        {
            "instrument": (
                "violin", "trumpet", "flute", "organ", "drum", "cello", "clarinet", "guitar",
                "accordion",
            ),
            "piece": ("waltz", "march", "song", "lullaby", "symphony", "dance", "hymn"),
        },
        (
            "The <instrument> was tuned before every rehearsal, and still it sounded like rain.",
            "<person> plays the <instrument>, <person> sings, and the <animal> leaves the room.",
            "The <piece> begins softly with the <instrument> and ends with all the drums in town.",
            "On <date> the choir of <town> sang for <count> people.",
            "Nobody knows who wrote the <piece>, but everybody can whistle it.",
            "To play the <instrument> well you need <virtue>.",
            "The concert <place> was moved indoors because of <weather>.",
            "She bought the <instrument> for $<count> from <a job> in <town>.",
            "Is the <instrument> harder to learn than the <instrument>?",
            "The second <piece> was too fast for the <instrument>, and the audience loved it.",
            "Between the <piece> and the <piece> there was <food> for everyone.",
            "<a adj> recording of the <piece> was found in the attic of the school.",
            "After the last note, nobody moved for <number> seconds.",
        ),
    ),
    "repair": (
        {
            "broken": (
                "pump", "chair", "radio", "roof", "lock", "engine", "window frame", "stove", "tap",
                "sewing machine",
            ),
            "spare": (
                "a screw", "a rubber ring", "a spring", "some glue", "a new cable", "a bolt",
                "a drop of oil",
            ),
        },
        (
            "Before you open the <broken>, take a photograph of it from every side.",
            "The <broken> needed only <spare>, but it took us <number> days to find that out.",
            "Every first <day> of the month, <person> repairs things for free <place>.",
            "<a broken> made of <material> can be mended; one made of plastic, as a rule, cannot.",
            "Turn the screw to the left, lift the lid, and look for <spare>.",
            "<relative> threw the <broken> away; I carried it home again.",
            "The most common fault is dust, the second most common is <spare> in the wrong place.",
            "Do you really need a new <broken>, or only <spare>?",
            "It worked for <number> minutes, then there was smoke and <a adj> smell.",
            "Old <material> swells when it is wet, so leave a gap of <small> millimetres.",
            "The shop in <town> still has parts for <a broken> from <year>.",
            '"Never force it," said <person>, and forced the <broken>.',
            "With <virtue> and <spare>, the <broken> will run for another <number> years.",
        ),
    ),
    "markets": (
        {
            "goods": (
                "cheese", "baskets", "candles", "wool", "apples", "knives", "honey", "pottery",
                "mushrooms", "second-hand books",
            ),
            "seller": (
                "the cheese woman", "the fish seller", "a farmer from the hills",
                "the basket maker", "the man with the scales",
            ),
        },
        (
            "The market opens at <small> o'clock, but the best <goods> are gone by then.",
            "<seller> has stood at the same corner since <year>.",
            "A kilo of <goods> costs <small> dollars, two kilos cost a smile more.",
            "On <day> there are <count> stalls, and on <day> hardly <number>.",
            "Between the <goods> and the <goods> a boy plays the accordion.",
            "<person> bought <goods> for the whole winter and forgot the <food>.",
            "Who still buys <goods> by the dozen?",
            "The town wants to move the market to the <thing>, and <seller> is against it.",
            "When there is <weather>, <seller> sells hot soup as well.",
            "The smell of <goods> reaches as far as the <thing>.",
            "Prices for <goods> rose by <small> per cent in <month>.",
            '"These <goods> are from yesterday," whispered <seller>, "take the others."',
            "At noon the bells ring, the <goods> are packed, and the pigeons take over.",
        ),
    ),
    "astronomy": (
        {
            "body": (
                "the moon", "Saturn", "a comet", "Jupiter", "the evening star", "a distant galaxy",
                "Mars", "the Milky Way",
            ),
            "gear": ("telescope", "pair of binoculars", "star map", "camera", "lens"),
        },
        (
            "With a simple <gear> you can see <body> from your own roof.",
            "On a clear night in <month>, <body> stands high above the southern horizon.",
            "Light from <body> has travelled a long way before it reaches <town>.",
            "The observatory <place> opens its doors every <day>.",
            "<title> <surname> discovered a small planet on <date> and named it after <person>.",
            "Is <body> larger than <body>? Look it up, you may be surprised.",
            "The <gear> has a mirror of <count> millimetres and <a adj> tube of <material>.",
            "Street lamps make it hard to find <body> from the centre of <town>.",
            "Children were allowed to stay up until <body> rose over the <thing>.",
            "For <number> minutes the moon covered the sun, and the birds fell silent.",
            "Clouds hid <body> for most of the night, so we drank tea and told stories.",
            "You need no <gear> for it, only dark skies and <virtue>.",
            "In <year> people in <town> feared <body> and locked up their <animal>.",
        ),
    ),
    "sports": (
        {
            "sport": (
                "football", "rowing", "tennis", "chess", "cycling", "handball", "swimming",
                "skiing",
            ),
            "result": (
                "a draw", "a narrow win", "a clear defeat", "a late goal", "a lucky point",
                "a broken record",
            ),
        },
        (
            "The <sport> team of <town> has not won against <town> since <year>.",
            "After <count> minutes the game ended with <result>.",
            "<person> <surname>, only <small> years old at the time, took up <sport> by accident.",
            "Training is on <day> and <day>, even when there is <weather>.",
            "<count> people watched the match, among them the <job> with a <colour> scarf.",
            "Nobody expected <result>, least of all <person>.",
            "What makes <sport> so popular in a small place like <town>?",
            "The club has <count> members, <number> boats and one trophy.",
            "In the second half, <person> fell, got up again, and forced <result>.",
            "The referee, <title> <surname>, looked at the clock and shook his head.",
            "For <sport> you need strong legs, good shoes and <virtue>.",
            "They celebrated <result> with <food> until midnight.",
            "The final will be played in <town> on the first <day> in <month>.",
        ),
    ),
    "history": (
        {
            "ruler": (
                "the duke", "the abbess", "the king's daughter", "a rich merchant", "the bishop",
                "a widow from the coast",
            ),
            "event": (
                "the great fire", "the siege", "the long winter", "the gold fever", "the plague",
                "the first election",
            ),
        },
        (
            "<town> was founded by <ruler>, who owned the salt works <place>.",
            "During <event>, half of the people left <town> and settled in <town>.",
            "The town wall was <small> metres high and had <number> gates.",
            "In <year>, <ruler> gave <town> the right to hold a market on <day>.",
            "Of the old castle only <a adj> tower of <material> remains.",
            "A letter of <ruler> mentions <a animal>, <number> barrels of wine and <event>.",
            "Historians such as <title> <surname> disagree about the date of <event>.",
            "The town hall, built of <material> in <year>, burned down twice.",
            "Who paid for the bridge, the town or <ruler>?",
            "After <event> the guild of the <job>s chose <a adj> swan as its sign.",
            "In the cellar of the museum lie <count> coins from the time of <event>.",
            "<ruler> slept here for <number> nights and complained about the <food>.",
            "The railway reached <town> in <year>, and with it came newspapers and debts.",
        ),
    ),
    "animals": (
        {
            "wild": (
                "fox", "heron", "badger", "owl", "squirrel", "hedgehog", "stork", "hare", "beaver",
            ),
            "trace": (
                "tracks in the snow", "a feather", "a small hole", "a nest of twigs",
                "bite marks on the bark",
            ),
        },
        (
            "The <wild> comes back every <season>, always to the same tree.",
            "We found <trace> <place> and followed them for an hour.",
            "A grown <wild> weighs about as much as <number> bags of flour.",
            "<person> raised a young <wild> in the kitchen until it was strong enough to leave.",
            "Does the <wild> sleep in winter, or does it only hide?",
            "The <animal> and the <wild> have lived side by side <place> for years.",
            "If you see <trace>, stay calm and walk on quietly.",
            "The number of animals like the <wild> near <town> has doubled since <year>.",
            "At dusk the <wild> leaves the wood and looks for <food> behind the inn.",
            "Never feed <a wild>, however hungry it looks.",
            "The vet in <town>, <title> <surname>, treats horses in the morning and owls at night.",
            "A <colour> <animal> followed us from the <thing> to the station.",
            "Often we see nothing of the <wild> but <trace>.",
        ),
    ),
    "travel": (
        {
            "vehicle": (
                "bus", "ferry", "bicycle", "night train", "tram", "cable car", "small boat",
            ),
            "sight": (
                "the lighthouse", "the old salt works", "the botanical garden", "the cathedral",
                "the hanging bridge", "the glass museum",
            ),
        },
        (
            "Take the <vehicle> to <town> and ask for <sight>.",
            "We missed the <vehicle> by <number> minutes and saw <sight> instead.",
            "<sight> is open from <month> to <month>, except on <day>.",
            "A room with a view of <sight> costs $<count> a night, breakfast included.",
            "The <vehicle> stops <place>, but only if you wave.",
            "<person> has crossed the country by <vehicle> with one bag and <a animal>.",
            "In our guide of <year>, <sight> is described as <adj> and draughty.",
            "Should you visit <town> in <season> or in <season>?",
            "From <sight> you can see as far as <town> when there is no <weather>.",
            "The hotel was full, so <relative> slept in the <vehicle>.",
            "Pack warm clothes, some <food> and a good map, not only a telephone.",
            "On the third day we reached <sight>, and nobody wanted to take a picture.",
            "The <vehicle> was late, but the driver told such good stories that nobody complained.",
        ),
    ),
    "house": (
        {
            "piece": (
                "sofa", "cupboard", "stove", "carpet", "shelf", "mirror", "staircase", "bed",
                "wallpaper",
            ),
            "flat": ("flat", "cottage", "farmhouse", "attic", "cellar", "kitchen"),
        },
        (
            "The <flat> has <number> windows and <a adj> <piece> that nobody wants to move.",
            "We painted the <piece> <colour>, which was <opinion>.",
            "Behind the <piece> we found letters from <year> and a child's shoe.",
            "A <piece> of <material> keeps the <flat> warm until the morning.",
            "How do you carry a <piece> up to the third floor?",
            "Rents in <town> rose by <small> per cent, and our <flat> is no exception.",
            "<relative> bought the <piece> at an auction for <small> dollars.",
            "On the stairs there was <a adj> smell of <food> and wet <animal>.",
            "The <flat> belonged to <title> <surname>, who never threw anything away.",
            "Clean the <piece> with warm water, never with sand.",
            "When there is <weather>, the <piece> creaks as if somebody were sitting on it.",
            "Light falls into the <flat> only <time>.",
            "The new <piece> came in <number> boxes, and one of them was empty.",
        ),
    ),
    "health": (
        {
            "trouble": (
                "a cold", "a sore throat", "a stiff neck", "a bad night", "a headache",
                "a bad mood",
            ),
            "remedy": (
                "hot tea", "a long walk", "fresh air", "an early night", "a warm bath",
                "a day without screens",
            ),
        },
        (
            "Against <trouble>, <relative> recommends <remedy> and <food>.",
            "<title> <surname> advises <remedy>, but not more than <number> times a week.",
            "If <trouble> lasts longer than <number> days, see a doctor.",
            "Studies from <year> show that <remedy> helps <small> out of 20 people.",
            "Is <remedy> better than <remedy>? The doctors of <town> are divided.",
            "The nurse opened the window, for <remedy> was all that <person> needed.",
            "The hospital in <town> has <count> beds and <a adj> garden.",
            "In <season>, half of the town has <trouble>.",
            "<person> walked <small> kilometres a day and forgot about <trouble>.",
            "Drink enough water, sleep enough, and worry less about <trouble>.",
            "My doctor, <title> <surname>, calls <remedy> the cheapest medicine of all.",
            "There is no cure for <trouble>, but <remedy> makes it bearable.",
            '"Stay in bed," said the doctor, "and read something <adj>."',
        ),
    ),
    "reviews": (
        {
            "work": ("film", "play", "comedy", "documentary", "novel", "concert", "exhibition"),
            "good": (
                "charming", "wonderful", "moving", "brilliant", "funny", "delightful", "clever",
                "touching", "beautiful", "gripping", "witty", "rewarding",
            ),
            "bad": (
                "boring", "dull", "clumsy", "tedious", "awful", "lifeless", "stale", "predictable",
                "messy", "annoying", "shallow", "pointless",
            ),
            "detail": (
                "acting", "music", "dialogue", "camera work", "ending", "plot", "opening scene",
                "script",
            ),
        },
        (
            "The <work> is <good> from beginning to end, and the <detail> is truly <good>.",
            "This <work> is <bad>, the <detail> is <bad>, and the <detail> is utterly <bad>.",
            "A <good> <detail> cannot save a <bad> <detail>.",
            "<person> called the <work> <good>; <person> left after <number> minutes.",
            "The director has made a <good> and often <good> <work> about <a job>.",
            "Was it <bad>, or were we only tired?",
            "It is a <bad> story of <a animal> and <a job>, easy to forget.",
            "You leave the cinema thinking that the <detail> was surprisingly <good>.",
            "The <detail> is worth every minute, the <detail> is a waste of time.",
            (
                "In <town> the <work> was sold out for <number> weeks, a triumph for <person> "
                "<surname>."
            ),
            "Critics found the <detail> <bad>, but the audience thought it was <good>.",
            "A small wonder, a gift to its audience, easy to love.",
            (
                "The <work> about the <colour> <thing> is an insult to its audience, said "
                "<title> <surname>."
            ),
        ),
    ),
    "council": (
        {
            "plan": (
                "the new bridge", "the cycle path", "the swimming hall", "the bus line",
                "the street lamps", "the playground",
            ),
            "side": (
                "the mayor", "the opposition", "the shop owners", "the parents", "the engineers",
            ),
        },
        (
            "<side> will vote on <plan> on the second <day> in <month>.",
            "Police said that a <colour> bicycle was stolen <place> on <day>.",
            "<plan> will cost <small> million dollars, twice as much as planned in <year>.",
            "<person>, <a job> from <town>, won the election with <count> votes.",
            "According to <side>, <plan> is <opinion>.",
            "<side> denied that <plan> had been promised for <month>.",
            "Heavy rain fell on <town> on <day>, and <number> streets were closed.",
            "It is not true that <plan> was never approved, officials said.",
            "The mayor of <town> opened <plan> after <number> years of work.",
            "Who will pay for <plan> if <town> has no money?",
            '"We have never seen anything like it," said <person>, <a job>.',
            "However, <side> disagreed and called the numbers false.",
            "Visitors are welcome, but swimming near <plan> is forbidden.",
        ),
    ),
}  # fmt: skip
