"""How the columns of labelled tables are usually called, role by role; names are compared as `plain` gives them."""

from __future__ import annotations

PAIRS = (
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("texta", "textb"),
    ("text1", "text2"),
    ("sentencea", "sentenceb"),
    ("s1", "s2"),
    ("#1string", "#2string"),
    ("text", "textpair"),
    ("text", "pair"),
    ("question", "sentence"),
    ("query", "document"),
    ("query", "passage"),
    ("question", "answer"),
    ("query", "answer"),
    ("anchor", "positive"),
    ("query", "positive"),
)
TEXTS = (
    "text",
    "sentence",
    "review",
    "comment",
    "content",
    "body",
    "message",
    "tweet",
    "document",
    "utterance",
    "query",
)
TITLES = ("title", "headline", "subject", "summary", "heading")  # short texts that belong to a longer one
LABELS = ("label", "class", "category", "target", "goldlabel", "isduplicate", "sentiment", "intent", "topic", "y")
LABEL_NAMES = ("labeltext", "labelname", "labelnames", "classname", "categoryname")  # beside a number
LABELS_MANY = ("labels", "classes", "categories", "topics", "genres", "emotions", "tags")
NEGATIVES = ("negative", "hardnegative", "neg")
NUMBERS = ("score", "similarity", "value", "rating", "stars", "quality")
CLASS_NUMBERS = ("label", "class", "category", "intent", "topic")  # whose numbers may be classes however many they are
PAIR_NUMBERS = ("score", "similarity")  # of two texts: a quantity also where it is in whole numbers
FILE = "file"  # of a text that is a whole file
IGNORED = ("id", "idx", "index", "guid", "uid", "pairid", "promptid", "unnamed:0", "", FILE, "filename", "path")
CONTEXTS = ("context", "passage", "article", "paragraph")
QUESTIONS = ("question", "query", "startphrase", "prompt")
CHOICES = ("choices", "options", "endings", "candidates")
TOKENS = ("tokens", "words")
TAGS = ("tags", "nertags", "postags", "labels")
ANSWERS = ("answers", "answerstart")

QUESTION_ROLES: dict[str, tuple[str, ...]] = {  # of tables in SQuAD form
    "context": ("context", "passage", "paragraph", "text"),
    "question": ("question", "query"),
    "answers": ("answers",),
    "answer": ("answer", "answertext"),
    "answer_start": ("answerstart", "start"),
    "id": ("id", "qid", "questionid"),
    "article": ("title",),
}

ROLES = {  # of the tasks whose columns are others than text, pair and label
    "tagging": ("tokens", "tags"),
    "similarity": ("text", "pair", "negative", "label"),
    "choice": ("question", "choices", "context", "text", "label"),
    "squad": ("context", "question", "answers", "answer", "answer_start", "id", "article"),
}


ALL_ROLES = tuple(dict.fromkeys(("text", "pair", "label", *(role for roles in ROLES.values() for role in roles))))


def plain(name: str) -> str:
    """Return a column's name without case, spaces, hyphens and underscores."""
    return "".join(name.casefold().split()).replace("_", "").replace("-", "")
