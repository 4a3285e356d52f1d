// JSON: reading the arguments of a call, and writing answers.

export enum Type { Null, Boolean, Number, Text, List, Object }

// A JSON value. `raw` is the text of a number.
export class Value {
  flag: bool = false;
  raw: string = "";
  text: string = "";
  items: Value[] = [];
  keys: string[] = [];
  constructor(readonly type: Type) {}

  get(key: string): Value | null {
    const at = this.keys.indexOf(key);
    return at < 0 ? null : this.items[at];
  }
}

const MOST_LEVELS: i32 = 128;

class Reader {
  at: i32 = 0;
  bad: bool = false;
  constructor(readonly text: string) {}

  fail(): Value {
    this.bad = true;
    return new Value(Type.Null);
  }

  space(): void {
    for (; this.at < this.text.length; this.at++) {
      const code = this.text.charCodeAt(this.at);
      if (code != 32 && code != 9 && code != 10 && code != 13) return;
    }
  }

  take(word: string): bool {
    if (!this.text.startsWith(word, this.at)) return false;
    this.at += word.length;
    return true;
  }

  value(level: i32): Value {
    this.space();
    if (level > MOST_LEVELS || this.at >= this.text.length) return this.fail();
    const code = this.text.charCodeAt(this.at);
    if (code == 34) return this.string();
    if (code == 123) return this.object(level);
    if (code == 91) return this.list(level);
    if (this.take("null")) return new Value(Type.Null);
    if (this.take("false")) return new Value(Type.Boolean);
    if (this.take("true")) {
      const value = new Value(Type.Boolean);
      value.flag = true;
      return value;
    }
    return this.number();
  }

  number(): Value {
    const begin = this.at;
    while (this.at < this.text.length && "+-.eE0123456789".includes(this.text.charAt(this.at))) this.at++;
    if (this.at == begin) return this.fail();
    const value = new Value(Type.Number);
    value.raw = this.text.substring(begin, this.at);
    return value;
  }

  string(): Value {
    const value = new Value(Type.Text);
    const pieces: string[] = [];
    let begin = ++this.at;
    while (this.at < this.text.length) {
      const code = this.text.charCodeAt(this.at);
      if (code == 34) {
        pieces.push(this.text.substring(begin, this.at++));
        value.text = pieces.length == 1 ? pieces[0] : pieces.join("");
        return value;
      }
      if (code != 92) {
        this.at++;
        continue;
      }
      pieces.push(this.text.substring(begin, this.at));
      const escape = this.text.charAt(this.at + 1);
      this.at += 2;
      if (escape == "u") {
        const unit = parseInt(this.text.substr(this.at, 4), 16);
        if (isNaN(unit)) return this.fail();
        pieces.push(String.fromCharCode(<i32>unit));
        this.at += 4;
      } else {
        const known = '"\\/bfnrt'.indexOf(escape);
        if (known < 0 || escape == "") return this.fail();
        pieces.push('"\\/\b\f\n\r\t'.charAt(known));
      }
      begin = this.at;
    }
    return this.fail();
  }

  list(level: i32): Value {
    const value = new Value(Type.List);
    this.at++;
    this.space();
    if (this.take("]")) return value;
    do {
      value.items.push(this.value(level + 1));
      this.space();
      if (this.bad || this.take("]")) return value;
    } while (this.take(","));
    return this.fail();
  }

  object(level: i32): Value {
    const value = new Value(Type.Object);
    this.at++;
    this.space();
    if (this.take("}")) return value;
    do {
      this.space();
      if (this.at >= this.text.length || this.text.charCodeAt(this.at) != 34) return this.fail();
      value.keys.push(this.string().text);
      this.space();
      if (!this.take(":")) return this.fail();
      value.items.push(this.value(level + 1));
      this.space();
      if (this.bad || this.take("}")) return value;
    } while (this.take(","));
    return this.fail();
  }
}

// A value; null where the text is no JSON.
export function parse(text: string): Value | null {
  const reader = new Reader(text);
  const value = reader.value(0);
  reader.space();
  return reader.bad || reader.at != text.length ? null : value;
}

// A text as JSON has it, with its quotes.
export function quoted(text: string): string {
  const pieces: string[] = ['"'];
  let begin = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code >= 32 && code != 34 && code != 92) continue;
    pieces.push(text.substring(begin, at));
    const known = '"\\\b\f\n\r\t'.indexOf(text.charAt(at));
    pieces.push(known >= 0 ? "\\" + '"\\bfnrt'.charAt(known) : "\\u00" + (code < 16 ? "0" : "") + code.toString(16));
    begin = at + 1;
  }
  pieces.push(text.substring(begin));
  pieces.push('"');
  return pieces.join("");
}

// A list of JSON texts.
export function listOf(items: string[]): string {
  return "[" + items.join(",") + "]";
}

// A list of texts.
export function listOfTexts(texts: string[]): string {
  return listOf(texts.map<string>((one) => quoted(one)));
}

// An object, member by member.
export class JsonObject {
  private members: string[] = [];
  // `json` is JSON text.
  raw(name: string, json: string): JsonObject {
    this.members.push(quoted(name) + ":" + json);
    return this;
  }
  string(name: string, value: string): JsonObject { return this.raw(name, quoted(value)); }
  integer(name: string, value: i64): JsonObject { return this.raw(name, value.toString()); }
  number(name: string, value: f64): JsonObject { return this.raw(name, isFinite(value) ? value.toString() : "null"); }
  boolean(name: string, value: bool): JsonObject { return this.raw(name, value ? "true" : "false"); }
  toString(): string { return "{" + this.members.join(",") + "}"; }
}
