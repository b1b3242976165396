// Keeps holds from being collected as garbage, which would release them: for tests that only want a
// hold to stand.
const kept: unknown[] = [];

export async function keep<T>(acquiring: Promise<T>): Promise<T> {
  const hold = await acquiring;
  kept.push(hold);
  return hold;
}
