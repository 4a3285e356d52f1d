// UTF-8 for engines without TextEncoder and TextDecoder.

export function encode(text) {
  const bytes = [];
  for (const character of text) {
    let point = character.codePointAt(0);
    // Half of a pair stands for nothing.
    if (point >= 0xd800 && point <= 0xdfff) point = 0xfffd;
    if (point < 0x80) bytes.push(point);
    else if (point < 0x800) bytes.push(0xc0 | (point >> 6), 0x80 | (point & 63));
    else if (point < 0x10000)
      bytes.push(0xe0 | (point >> 12), 0x80 | ((point >> 6) & 63), 0x80 | (point & 63));
    else
      bytes.push(
        0xf0 | (point >> 18),
        0x80 | ((point >> 12) & 63),
        0x80 | ((point >> 6) & 63),
        0x80 | (point & 63),
      );
  }
  return new Uint8Array(bytes);
}

// The lead byte's bits, how many bytes follow it, and the least number that needs so many.
const LEADS = [
  [0xe0, 0xc0, 1, 0x80],
  [0xf0, 0xe0, 2, 0x800],
  [0xf8, 0xf0, 3, 0x10000],
];

// Text from bytes; what is no UTF-8 becomes U+FFFD, or throws where `strict` is set.
export function decode(bytes, strict = false) {
  const pieces = [];
  let piece = [];
  for (let at = 0; at < bytes.length; ) {
    const [point, size] = one(bytes, at);
    if (point < 0 && strict) throw new TypeError("not valid UTF-8 text");
    piece.push(point < 0 ? 0xfffd : point);
    at += size;
    if (piece.length === 4096) {
      pieces.push(String.fromCodePoint(...piece));
      piece = [];
    }
  }
  pieces.push(String.fromCodePoint(...piece));
  return pieces.join("");
}

function one(bytes, at) {
  const lead = bytes[at];
  if (lead < 0x80) return [lead, 1];
  for (const [mask, bits, more, least] of LEADS) {
    if ((lead & mask) !== bits) continue;
    let point = lead & ~mask & 0xff;
    for (let next = 1; next <= more; next++) {
      const byte = bytes[at + next];
      if (byte === undefined || (byte & 0xc0) !== 0x80) return [-1, next];
      point = (point << 6) | (byte & 63);
    }
    const bad = point < least || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff);
    return [bad ? -1 : point, more + 1];
  }
  return [-1, 1];
}
