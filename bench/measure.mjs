// Rounds in which the contenders take turns, so that a noisy moment hits all of them.
const rounds = 9;
const roundMs = 120;

/** For each contender: the median of calls per second, and the disk operations of one call where they can be counted. */
export async function measure(contenders, counts) {
  const results = new Map(contenders.map(({ name }) => [name, { rates: [], operations: "" }]));
  for (const { name, call } of contenders) {
    await call();
    counts.reset();
    await call();
    results.get(name).operations = counts.describe();
  }
  for (let round = 0; round < rounds; round++)
    for (const { name, call, callsPerRun = 1 } of contenders) {
      const start = performance.now();
      let calls = 0;
      while (performance.now() - start < roundMs) {
        await call();
        calls += callsPerRun;
      }
      results.get(name).rates.push((1000 * calls) / (performance.now() - start));
    }
  return new Map([...results].map(([name, { rates, operations }]) => [name, { perSecond: median(rates), operations }]));
}

export function print({ title, baseline, contenders }, results) {
  console.log(`\n${title} (ratio to: ${baseline})`);
  const base = results.get(baseline).perSecond;
  for (const { name } of contenders) {
    const { perSecond, operations } = results.get(name);
    console.log(
      `  ${name.padEnd(44)} ${(perSecond / base).toFixed(2).padStart(7)} ×  ${Math.round(perSecond).toString().padStart(8)}/s  ${operations}`,
    );
  }
}

function median(values) {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}
