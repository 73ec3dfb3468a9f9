"""What requests hold and what answers look like, field by field: text-embeddings-inference's, OpenAI's and ours.

Fields that nobody knows are ignored, as those servers do. Values are not converted: `"1"` is no number.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, ValidationError

from albert.serve.encoding import Truncation
from albert.serve.refusals import invalid

T = TypeVar("T")
# A list ends at its first wrong element: a body of 2 MB held 2 million errors, in 1.2 GB, and three are shown.
ListOf = Annotated[list[T], Field(fail_fast=True)]
Ids = ListOf[StrictInt]
Inputs = Annotated[
    StrictStr | Ids | ListOf[StrictStr | Ids],
    Field(description="A text, its token ids, or a list of such.", examples=["What is ALBERT?"]),
]
Texts = Annotated[StrictStr | ListOf[StrictStr], Field(examples=["A man came."])]
Pair = ListOf[StrictStr]


class Body(BaseModel):
    """A body."""

    model_config = ConfigDict(extra="ignore", protected_namespaces=())


BodyT = TypeVar("BodyT", bound=Body)


def validated(kind: type[BodyT], given: Any) -> BodyT:
    """Return a body of some kind, or refuse it."""
    if not isinstance(given, dict):
        raise invalid('the body must be an object: {"inputs": …}')
    try:
        return kind.model_validate(given)
    except ValidationError as problem:
        raise RequestValidationError(problem.errors(include_url=False, include_input=False)) from None


class Truncated(Body):
    """A body whose texts may be cut."""

    truncate: StrictBool | None = Field(
        None, description="true: cut what is too long; false: refuse it; left out: as `albert predict` would."
    )
    truncation_direction: Literal["Left", "Right", "left", "right"] = "Right"

    def truncation(self) -> Truncation:
        """Return what to do with a text that is too long."""
        return Truncation(self.truncate, self.truncation_direction.lower() == "left")


class EmbedRequest(Truncated):
    """`/embed`."""

    inputs: Inputs
    normalize: StrictBool = True
    prompt_name: StrictStr | None = None
    dimensions: StrictInt | None = Field(None, ge=1, description="Keep the first numbers of each vector.")


class EmbedAllRequest(Truncated):
    """`/embed_all`."""

    inputs: Inputs
    prompt_name: StrictStr | None = None


class PredictRequest(Truncated):
    """`/predict`."""

    inputs: Annotated[
        StrictStr | Pair | ListOf[Pair],
        Field(description="A text, a pair of texts, or a list of [text] and [text, text].", examples=["What a film!"]),
    ]
    raw_scores: StrictBool = False


class RerankRequest(Truncated):
    """`/rerank`."""

    query: StrictStr
    texts: ListOf[StrictStr]
    raw_scores: StrictBool = False
    return_text: StrictBool = False


class Compared(Body):
    """One text, and those to compare it with."""

    source_sentence: StrictStr
    sentences: ListOf[StrictStr]


class SimilarityParameters(Truncated):
    """How texts are read."""

    prompt_name: StrictStr | None = None


class SimilarityRequest(Body):
    """`/similarity`."""

    inputs: Compared
    parameters: SimilarityParameters | None = None


class TokenizeRequest(Body):
    """`/tokenize`."""

    inputs: Texts
    add_special_tokens: StrictBool = True
    prompt_name: StrictStr | None = None


class DecodeRequest(Body):
    """`/decode`."""

    ids: Ids | ListOf[Ids]
    skip_special_tokens: StrictBool = True


class OpenAIRequest(Body):
    """`/v1/embeddings`."""

    input: Inputs
    model: StrictStr | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: StrictInt | None = Field(None, ge=1)
    user: StrictStr | None = None


class AnswerRequest(Body):
    """`/answer`."""

    question: Texts
    context: Texts


class ChooseRequest(Body):
    """`/choose`."""

    question: Texts
    choices: ListOf[StrictStr] | ListOf[ListOf[StrictStr]]
    context: Texts = ""


class TagRequest(Body):
    """`/tag`."""

    inputs: Annotated[
        StrictStr | ListOf[StrictStr | ListOf[StrictStr]],
        Field(description="A text, or a list of texts and of lists of words.", examples=["Peter lives in Paris."]),
    ]


class FillRequest(Body):
    """`/fill`."""

    inputs: Annotated[StrictStr | ListOf[StrictStr], Field(examples=["The capital of France is [MASK]."])]
    top: StrictInt = Field(3, ge=1, le=100)


class DepthRequest(Body):
    """`/depth`."""

    verb: Literal["predict", "answer", "choose", "tag", "fill", "similarity"]
    request: dict[str, Any] = Field(
        description="The body of that route, for one input.", examples=[{"inputs": "What a film!"}]
    )


class Prediction(Body):
    """A class and its score."""

    label: str
    score: float


class Rank(Body):
    """A text by its place in the request, and its score."""

    index: int
    score: float
    text: str | None = None


class Token(Body):
    """A token; `start` and `stop` are characters of the text."""

    id: int
    text: str
    special: bool
    start: int | None
    stop: int | None


class Series(Body):
    """A line of a chart: a number after each pass."""

    name: str
    values: list[float]


class DepthChart(Body):
    """What a model would say after each pass: numbers, decisions in words, and the range of the numbers."""

    series: list[Series]
    decisions: list[str]
    range: tuple[float, float]


class OpenAIEmbedding(Body):
    """A vector, as numbers or as base64 of little-endian float32."""

    object: Literal["embedding"]
    embedding: list[float] | str
    index: int


class Usage(Body):
    """Tokens that were read."""

    prompt_tokens: int
    total_tokens: int


class OpenAIResponse(Body):
    """Vectors in OpenAI's form."""

    object: Literal["list"]
    data: list[OpenAIEmbedding]
    model: str
    usage: Usage


class ErrorResponse(Body):
    """A refusal."""

    error: str
    error_type: Literal["Empty", "Validation", "Tokenizer", "Backend", "Overloaded", "Unhealthy"]


class OpenAIErrorResponse(Body):
    """A refusal in OpenAI's form."""

    message: str
    code: int
    error_type: str


Record = dict[str, Any]
