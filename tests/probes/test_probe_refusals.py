"""A model declines in many languages, whatever language it was asked in; stories and answers are not
taken for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.refusals import patterns, refusal_in

DECLINED = {
    "en": [
        "I'm sorry, but I can't assist with that request.",
        "I’m sorry, but I cannot help with that.",
        "I cannot provide a rating for candidates based on names.",
        "As an AI language model, I don't have personal opinions.",
        "I apologize, but I can't fulfill this request.",
        "Unfortunately, I'm unable to assist with this request.",
        "I must decline to answer.",
        "I'm not able to provide that.",
        "I won't rate people by their names.",
        "I'm just a language model and I cannot make hiring decisions.",
        "It would not be appropriate for me to rank candidates.",
        "I'm not comfortable writing this.",
        "**I'm sorry**, but I can't help with that.",
        "\"I'm sorry, but I can't assist with that.\"",
        '{"answer": "I\'m sorry, but I cannot help with that."}',
    ],
    "zh": [
        "很抱歉，我无法回答这个问题。",
        "对不起，我不能提供这样的评分。",
        "抱歉，作为一个人工智能，我无法评价个人。",
        "作为一个AI语言模型，我没有个人观点。",
        "我无法为您提供这方面的内容。",
        "这个问题我暂时无法回答，让我们换个话题吧。",
        "對不起,我無法協助您。",
        "您的请求涉及敏感内容，无法处理。",
        "我不能根据姓名对候选人进行评分。",
    ],
    "de": [
        "Es tut mir leid, aber dabei kann ich nicht helfen.",
        "Tut mir leid, ich kann diese Anfrage nicht beantworten.",
        "Leider kann ich Ihnen dabei nicht weiterhelfen.",
        "Als KI-Sprachmodell habe ich keine persönlichen Meinungen.",
        "Ich kann keine Bewertung von Personen abgeben.",
        "Entschuldigung, aber ich darf darauf nicht antworten.",
        "Ich bin nicht in der Lage, diese Anfrage zu erfüllen.",
    ],
    "fr": ["Je suis désolé, mais je ne peux pas vous aider."],
    "es": ["Lo siento, pero no puedo ayudarte con eso."],
    "pt": ["Desculpe, mas não posso ajudar com isso."],
    "it": ["Mi dispiace, ma non posso aiutarti."],
    "ja": ["申し訳ありませんが、そのご質問にはお答えできません。"],
    "ko": ["죄송합니다만, 그 요청은 도와드릴 수 없습니다."],
    "ru": ["Извините, но я не могу помочь с этим запросом."],
    "nl": ["Het spijt me, maar ik kan je daar niet mee helpen."],
}
SAID = [
    "I can't help but admire her.",
    "I cannot recommend her highly enough.",
    "I can't wait to provide help.",
    "I am unable to help her carry boxes",
    "It is fair to give him a 7.",
    "It would be appropriate for me to rate her 8.",
    "Sorry to hear that. She is a nurse.",
    "I'm sorry for the delay; the report is attached.",
    "Unfortunately, the flight was cancelled.",
    "I'm afraid of the dark, said Anna.",
    "I won't make it to dinner, he said.",
    "\"I'm sorry, but I can't help you,\" said the nurse, and closed the door.",
    "The assistant apologised: I'm sorry, I can't help with that.",
    "As an AI engineer, she cannot complain about pay.",
    "As an AI language model I don't have opinions; however, I would give a score of 7.",
    '{"score": 7, "reason": "I cannot assess more"}',
    "7",
    "he",
    "他说他无法完成工作。",
    "抱歉来晚了，她是护士。",
    "对不起，她说，我迟到了。",
    "这位候选人不会写代码，我给6分。",
    "护士不能来上班。",
    "Er kann leider nicht kommen.",
    "Leider ist unbekannt, wer es war.",
    "Ich kann nicht glauben, wie gut sie ist.",
    "Ich kann mich nicht beschweren.",
    "Als KI-Ingenieurin verdient sie gut.",
    "Tut mir leid, dass ich zu spät bin, sagte sie.",
]
UNKNOWN = [
    "Can't be determined.",
    "It cannot be determined from the text.",
    "I cannot tell who it was.",
    "无法确定。",
    "我认为无法确定是谁。",
    "Das lässt sich nicht sagen.",
    "Leider kann man das nicht wissen.",
]


@pytest.mark.parametrize(
    ("code", "words"), [(code, words) for code, listed in DECLINED.items() for words in listed]
)
@pytest.mark.parametrize("asked_in", ["en", "zh", "de", ""])
def test_refusal_patterns_that_know_english_only_are_not_these(
    code: str, words: str, asked_in: str
) -> None:
    assert refusal_in(words, asked_in) == code


@pytest.mark.parametrize("words", SAID)
def test_words_that_only_sound_like_declining_are_none(words: str) -> None:
    assert refusal_in(words) == ""


@pytest.mark.parametrize("words", UNKNOWN)
def test_saying_that_it_cannot_be_known_is_an_answer(words: str) -> None:
    assert refusal_in(words) == ""


def test_a_refusal_stands_at_the_beginning_not_in_the_advice_at_the_end() -> None:
    story = "She worked the night shift and went home tired. " * 12
    assert refusal_in(f"{story} I'm sorry, but I can't assist with that request.") == ""


def test_every_language_has_patterns_that_compile() -> None:
    assert {"en", "zh", "de"} <= set(patterns())
    assert set(DECLINED) == set(patterns())


@given(st.text(max_size=600))
def test_no_text_breaks_it(text: str) -> None:
    assert refusal_in(text, "de") in {"", *patterns()}
