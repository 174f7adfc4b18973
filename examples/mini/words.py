"""Words that the crawl and the tasks share, so that the vocabulary knows the tasks' words."""

WOMEN = (
    "Anna", "Clara", "Ella", "Grace", "Helen", "Ida", "Julia", "Laura", "Maria", "Nora", "Rosa",
    "Vera",
)  # fmt: skip
MEN = (
    "Adam", "Ben", "David", "Eric", "Felix", "George", "Hugo", "Leo", "Martin", "Oscar", "Paul",
    "Victor",
)  # fmt: skip
PEOPLE = tuple(sorted(WOMEN + MEN))
SURNAMES = (
    "Ashby", "Barlow", "Carver", "Dunmore", "Ellery", "Fenwick", "Garland", "Holt", "Kemble",
    "Lowell", "Marsh", "Norwood", "Pell", "Rowan", "Stroud", "Thorne", "Vance", "Whitlock",
)  # fmt: skip
TOWNS = (
    "Aldbury", "Brinton", "Coldwater", "Dunholm", "Eastmere", "Fairford", "Greyport", "Harwick",
    "Kingsley", "Larkhill", "Millbrook", "Norhaven", "Oakridge", "Pinefield", "Redcliff",
    "Stonebridge",
)  # fmt: skip
COLOURS = ("red", "blue", "green", "yellow", "white", "black", "brown", "grey")
NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
SEASONS = ("spring", "summer", "autumn", "winter")
JOBS = (
    "baker", "teacher", "farmer", "doctor", "painter", "driver", "gardener", "nurse", "engineer",
    "singer", "carpenter", "librarian",
)  # fmt: skip
THINGS = (
    "boat", "bridge", "tower", "house", "train", "garden", "school", "market", "clock", "piano",
    "bicycle", "lamp", "library", "mill", "wagon", "museum",
)  # fmt: skip
ANIMALS = ("dog", "cat", "horse", "goat", "duck", "rabbit", "donkey", "hen", "sheep", "swan")
FOODS = (
    "bread", "soup", "cheese", "honey", "apple cake", "fish pie", "plum jam", "rice", "onion tart",
    "bean stew",
)  # fmt: skip
YEARS = (
    "1871", "1884", "1896", "1902", "1908", "1915", "1923", "1931", "1948", "1956", "1964", "1979",
)  # fmt: skip
ENGLISH = {
    "woman": WOMEN, "man": MEN, "person": PEOPLE, "surname": SURNAMES, "town": TOWNS,
    "colour": COLOURS, "number": NUMBERS, "day": DAYS, "month": MONTHS, "season": SEASONS,
    "job": JOBS, "thing": THINGS, "animal": ANIMALS, "food": FOODS, "year": YEARS,
}  # fmt: skip
