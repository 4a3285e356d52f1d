// The memory that the host and a component hand each other. It lies outside of what is collected.

// Where the host puts what it hands over; whoever takes it frees it.
export function cabi_realloc(old: usize, oldSize: usize, align: usize, size: usize): usize {
  if (size == 0) return align;
  return oldSize == 0 ? heap.alloc(size) : heap.realloc(old, size);
}

// What the host reads after a call, until it has read it.
const answer: usize[] = [];

// Memory that is freed when the host has read the answer.
export function lent(size: usize): usize {
  const made = heap.alloc(size == 0 ? 1 : size);
  memory.fill(made, 0, size);
  answer.push(made);
  return made;
}

export function freeAll(): void {
  for (let at = 0; at < answer.length; at++) heap.free(answer[at]);
  answer.length = 0;
  __collect();
}

// A text as UTF-8, lent: its address. `lastLength` is its length.
export let lastLength: usize = 0;
export function lendText(text: string): usize {
  const size = <usize>String.UTF8.byteLength(text);
  const made = lent(size);
  if (size > 0) String.UTF8.encodeUnsafe(changetype<usize>(text), text.length, made);
  lastLength = size;
  return made;
}

// Writes the address and the length of a text at an address.
export function putText(at: usize, text: string): void {
  store<usize>(at, lendText(text));
  store<usize>(at, lastLength, 4);
}

export function putBytes(at: usize, bytes: Uint8Array): void {
  const made = lent(bytes.length);
  memory.copy(made, bytes.dataStart, bytes.length);
  store<usize>(at, made);
  store<usize>(at, <usize>bytes.length, 4);
}

// The text whose address and length the host has written at an address; it is freed.
export function takeText(at: usize): string {
  const data = load<usize>(at), length = load<usize>(at, 4);
  if (length == 0) return "";
  const text = String.UTF8.decodeUnsafe(data, length);
  heap.free(data);
  return text;
}

export function takeBytes(at: usize): Uint8Array {
  const data = load<usize>(at), length = load<usize>(at, 4);
  const bytes = new Uint8Array(<i32>length);
  if (length > 0) {
    memory.copy(bytes.dataStart, data, length);
    heap.free(data);
  }
  return bytes;
}

// Room for every result of the host: the largest has 104 bytes.
export const slot: usize = memory.data(128, 8);
