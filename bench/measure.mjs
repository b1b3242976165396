// Rounds in which the contenders take turns: many short ones, so that a noisy moment hits all of
// them.
const rounds = 25;
const roundMs = 45;
/** Before the first round: what is compared are programs that have been running for a while. */
const warmUpMs = 400;

/**
 * For each contender: calls per second in each round, what a call takes of this process's CPU,
 * which says more than its time where others are busy, and the operations of one call where they
 * can be counted. `prepare` of a contender is called before each of its rounds, and not timed.
 */
export async function measure(contenders, counts) {
  const results = new Map(contenders.map(({ name }) => [name, { rates: [], calls: 0, cpuUs: 0 }]));
  for (const { name, call, countedCall = call, prepare } of contenders) {
    prepare?.();
    await countedCall();
    counts.reset();
    await countedCall();
    Object.assign(results.get(name), { operations: counts.describe(), operationsTotal: counts.total });
  }
  for (const { call } of contenders) await repeat(call, warmUpMs);
  for (let round = 0; round < rounds; round++)
    for (const { name, call, callsPerRun = 1, prepare } of contenders) {
      prepare?.();
      const result = results.get(name);
      const before = process.cpuUsage();
      const { times, tookMs } = await repeat(call, roundMs);
      const { user, system } = process.cpuUsage(before);
      result.rates.push((1000 * times * callsPerRun) / tookMs);
      result.cpuUs += user + system;
      result.calls += times * callsPerRun;
    }
  return results;
}

async function repeat(call, forMs) {
  const start = performance.now();
  let times = 0;
  for (; performance.now() - start < forMs; times++) await call();
  return { times, tookMs: performance.now() - start };
}

/**
 * How much faster one was than another: the median over the rounds, because a disk that is ten
 * times slower for a second is so for both.
 */
export function ratioOf({ rates }, { rates: baseRates }) {
  return median(rates.map((rate, round) => rate / baseRates[round]));
}

/** For each of the named calls: the median of what one takes, in milliseconds. */
export async function timeCalls(calls, { callsPerRound }) {
  const times = new Map(Object.keys(calls).map((name) => [name, []]));
  for (let round = 0; round < rounds; round++)
    for (const [name, call] of Object.entries(calls))
      for (let i = 0; i < callsPerRound; i++) {
        const start = performance.now();
        await call();
        times.get(name).push(performance.now() - start);
      }
  return new Map([...times].map(([name, each]) => [name, median(each)]));
}

export function median(values) {
  return quantile(values, 0.5);
}

export function quantile(values, part) {
  return [...values].sort((a, b) => a - b)[Math.floor(part * values.length)];
}
