"""Text to train vocabularies on: made-up words, and a few sentences in eleven languages; fixtures for all."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

# The first sentences of the Universal Declaration of Human Rights.
DECLARATION = {
    "en": "All human beings are born free and equal in dignity and rights. They are endowed with reason.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison.",
    "vi": "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi.",
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью.",
    "ar": "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميرًا.",
    "hi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
    "zh": "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "ko": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 이성과 양심을 부여받았다.",
    "th": "มนุษย์ทั้งปวงเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม",
}


def _documents() -> list[str]:
    """Make documents of made-up words with numbers and punctuation, and some of eleven languages."""
    rng = random.Random(0)
    syllables = ["ba", "co", "di", "fu", "ga", "lo", "mi", "nu", "pe", "ra", "so", "ti", "vo", "xe", "é", "ing", "er"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(500)]
    documents = []
    for _ in range(400):
        sentence = [*rng.choices(words, k=12), f"({rng.choice(words)})", f"{rng.randint(1, 40)},", "2010,", "1,234"]
        rng.shuffle(sentence)
        documents.append(" ".join(sentence).capitalize() + ".\n" + " ".join(rng.choices(words, k=20)) + "!")
    for text in DECLARATION.values():
        documents += [f"{text} {number}" for number in range(8)]
    return documents


@pytest.fixture(scope="session")
def declaration() -> dict[str, str]:
    """Return a sentence or two in eleven languages."""
    return DECLARATION


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of text that trains 900 pieces."""
    path = tmp_path_factory.mktemp("text") / "corpus.txt"
    path.write_text("\n\n".join(_documents()) + "\n", encoding="utf-8")
    return path
