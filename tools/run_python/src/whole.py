"""Texts that can leave the interpreter: a `str` may hold half a surrogate pair, and no other language's text can."""


def whole(text):
    """The text, with U+FFFD for each half of a pair; the two halves of one become its character."""
    if text.isascii():
        return text
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
