"""Records test/fixtures/tokenizers/*.json: strings as Hugging Face's own library (Rust) and SentencePiece encode them.

    pip install tokenizers sentencepiece && python test/support/record-tokenizers.py test/fixtures/tokenizers

With a number behind the folder that many strings are recorded of each tokenizer, 200 by default; with the tokenizer.json
of SmolLM2 behind that, of it too.
"""

import copy
import json
import os
import random
import sys
import tempfile

import sentencepiece
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

FOLDER, COUNT = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200
TEXT = """The cat sat on the mat, and the dog said: "I'm not there; it's theirs!" They'll see that we've got 1234 oak logs.
craft 4 oak planks using 1 oak logs
In 2026 the price was 12.50 euros (or 3/4 of that). Don't look around: nothing's there, is it? SHE'LL SAY NO, HE'S SURE.
def main(x):\n    return x + 1  # the sum of two numbers
A text is cut into words, and words are cut into pieces; pieces are numbers, and numbers are all that a model reads.
"""

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r"\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
WORD = r"[^\r\n\p{L}\p{N}]?"
QWEN2 = CONTRACTIONS + r"|" + WORD + r"\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + REST
LLAMA3 = CONTRACTIONS + r"|" + WORD + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + REST
TEKKEN = WORD + UPPER + "*" + LOWER + "+|" + WORD + UPPER + "+" + LOWER + r"*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + REST
GPT4O = (WORD + UPPER + "*" + LOWER + "+" + CONTRACTIONS + "?|" + WORD + UPPER + "+" + LOWER + "*" + CONTRACTIONS
         + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + REST)


def byte_level(pattern, prefix=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": False, "use_regex": pattern}


def split(pattern, behavior="Isolated"):
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": False}


def sequence(*parts):
    return {"type": "Sequence", "pretokenizers": list(parts)}


NFC = {"type": "NFC"}
STRIP = {"type": "Sequence", "normalizers": [{"type": "Strip", "strip_left": True, "strip_right": True},
                                             {"type": "Replace", "pattern": {"String": "a"}, "content": "$&b"}]}
# Name: normalizer, pre-tokenizer, whether words that are tokens are never cut.
VARIANTS = {
    "gpt-2": (None, byte_level(True), False),
    "gpt-2 with a blank before": (None, byte_level(True, True), False),
    "smollm": (None, sequence({"type": "Digits", "individual_digits": True}, byte_level(True)), False),
    "digits together": (None, sequence({"type": "Digits", "individual_digits": False}, byte_level(True)), False),
    "qwen2": (NFC, sequence(split({"Regex": QWEN2}), byte_level(False)), False),
    "llama3": (None, sequence(split({"Regex": LLAMA3}), byte_level(False)), True),
    "tekken": (None, sequence(split({"Regex": TEKKEN}), byte_level(False)), True),
    "gpt-4o": (None, sequence(split({"Regex": GPT4O}), byte_level(False)), False),
    "words": (None, sequence({"type": "Whitespace"}, byte_level(False)), False),
    "blanks": (None, sequence({"type": "WhitespaceSplit"}, byte_level(False)), False),
    "before a blank": (None, sequence(split({"String": " "}, "MergedWithPrevious"), byte_level(False)), False),
    "behind a sign": (None, sequence(split({"Regex": "[ -/]"}, "MergedWithNext"), byte_level(False)), False),
    "stripped": (STRIP, byte_level(True), False),
}

POOLS = [
    list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    list("0123456789"),
    list(" \t\n\r\u00a0\u2003\u3000\u200b\u0085\u2028\ufeff\u1680\u180e\x0b\x0c\x1c\x1d\x1e\x1f"),
    list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
    list("½²³¹¼¾①②Ⅷ⅓٣٤०१๓༣೬〇一二三㊿㉈𝟙𝟚𝟛"),
    list("éèüßñçøåæœÿŁžǅǈʰˠKſİıﬁÅΩ"),
    list("漢字仮名かな한국어ไทยعربעבरत"),
    list("\u0301\u0308\u0327\u20dd\u0903\ufe0f\u200d"),
    list("😀👍🏽👩🇩🇪€£§©™°µ∞→■▁Ġ"),
    ["'s", "'S", "'ll", "'RE", "'ſ", "'ſo", "n't", "don't", "I'M"],
    ["the ", "and ", "numbers ", "  ", "   ", "\n\n", "\r\n", "oak logs"],
    ["<|im_start|>", "<|im_end|>", "<s>", "<0x0A>"],
]


# What libraries take for letters, digits and blanks in other ways.
FIXED = ["x'ſ'do", "'ſabc", "don't'ſabc he'ſo", "'ll'ſ'S'RE'll'Sn't", "12½34²٣५ a½b ½½", " ½  ½", "a\ufeff b \ufeff's", "\u0085 \u0085\u0085a \u0085's",
         "\ufeff\ufeff\n\n", "<\x1d< the\x1cre", "a-b_c d/e\u2003f", " $a ", ""]


def strings(seed):
    yield from FIXED
    chance = random.Random(seed)
    for _ in range(COUNT - len(FIXED)):
        pools = chance.sample(POOLS, chance.randint(1, 4))
        text = ""
        for _ in range(chance.choice([1, 2, 3, 5, 8, 13])):
            letter = chr(chance.randrange(0x20, 0x3000))
            text += letter if chance.random() < 0.08 else chance.choice(chance.choice(pools))
        yield text


def write(name, value):
    with open(os.path.join(FOLDER, name), "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=True, separators=(",", ":"))


tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
# U+001C to U+001F have no token: bytes that a vocabulary lacks are left out.
alphabet = sorted(letter for letter in pre_tokenizers.ByteLevel.alphabet() if letter not in "ĜĝĞğ")
trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, special_tokens=["<|im_start|>", "<|im_end|>"],
                              show_progress=False)
tokenizer.train_from_iterator(TEXT.split("\n"), trainer)
base = json.loads(tokenizer.to_str())
rows = {}
for number, (name, (normalizer, pre_tokenizer, ignore_merges)) in enumerate(VARIANTS.items()):
    variant = copy.deepcopy(base)
    variant.update(normalizer=normalizer, pre_tokenizer=pre_tokenizer)
    variant["model"]["ignore_merges"] = ignore_merges
    rust = Tokenizer.from_str(json.dumps(variant))
    encoded = [(text, rust.encode(text, add_special_tokens=False).ids) for text in strings(number)]
    parts = {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "ignore_merges": ignore_merges}
    rows[name] = {**parts, "strings": [[text, ids, rust.decode(ids, skip_special_tokens=False)] for text, ids in encoded]}
write("byte-level.json", {"base": base, "variants": rows})

with tempfile.TemporaryDirectory() as folder:
    source = os.path.join(folder, "text")
    with open(source, "w", encoding="utf-8") as file:
        file.write(TEXT)
    found = []
    for prefix in (True, False):
        path = os.path.join(folder, "model")
        sentencepiece.SentencePieceTrainer.train(
            input=source, model_prefix=path, vocab_size=420, model_type="bpe", byte_fallback=True, add_dummy_prefix=prefix,
            normalization_rule_name="identity", remove_extra_whitespaces=False, minloglevel=2)
        pieces = sentencepiece.SentencePieceProcessor(model_file=path + ".model")
        count = pieces.get_piece_size()
        kind = lambda i: 2 if pieces.is_unknown(i) else 3 if pieces.is_control(i) else 6 if pieces.is_byte(i) else 1
        entries = {
            "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.tokens": [pieces.id_to_piece(i) for i in range(count)],
            "tokenizer.ggml.scores": [pieces.get_score(i) for i in range(count)],
            "tokenizer.ggml.token_type": [kind(i) for i in range(count)],
            "tokenizer.ggml.unknown_token_id": 0,
            "tokenizer.ggml.bos_token_id": 1,
            "tokenizer.ggml.eos_token_id": 2,
            "tokenizer.ggml.add_bos_token": True,
            "tokenizer.ggml.add_space_prefix": prefix,
        }
        # Special tokens in a text are no matter of SentencePiece's.
        texts = [text for text in strings(99) if "<s>" not in text]
        found.append({"entries": entries, "strings": [[text, pieces.encode(text)] for text in texts]})
    write("sentence-pieces.json", found)

if len(sys.argv) > 3:
    rust = Tokenizer.from_file(sys.argv[3])
    encoded = [(text, rust.encode(text, add_special_tokens=False).ids) for text in strings(7)]
    write("smollm2.json", [[text, ids, rust.decode(ids, skip_special_tokens=False)] for text, ids in encoded])
