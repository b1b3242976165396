// A hold that nobody keeps is released when it is collected, as it should be. A test that only wants it to stand keeps it here.
const kept: unknown[] = [];

export async function keep<T>(acquiring: Promise<T>): Promise<T> {
  const hold = await acquiring;
  kept.push(hold);
  return hold;
}
