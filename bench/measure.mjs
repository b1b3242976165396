// Rounds in which the contenders take turns: many short ones, so that a noisy moment hits all of
// them.
import { ownCpuUs } from "./cpu.mjs";
import { roundMsOf, sized } from "./settings.mjs";

const rounds = sized(25, 2);
const roundMs = roundMsOf(45, 10, rounds);
/** Before the first round: what is compared are programs that have been running for a while. */
const warmUpMs = sized(400, 10);

/**
 * For each contender: calls per second in each round, the processor time of a call, and the
 * operations of one call where they can be counted. `prepare` of a contender is called before each of
 * its rounds, and not timed. `cpuUs` gives the processor time of all its processes so far; default:
 * that of this one.
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
    for (const { name, call, callsPerRun = 1, prepare, cpuUs = ownCpuUs } of contenders) {
      prepare?.();
      const result = results.get(name);
      const before = cpuUs();
      const { times, tookMs } = await repeat(call, roundMs);
      result.cpuUs += cpuUs() - before;
      result.rates.push((1000 * times * callsPerRun) / tookMs);
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

/** The processor time of a call of one by that of another. */
export function cpuRatioOf(one, other) {
  return one.cpuUs / one.calls / (other.cpuUs / other.calls);
}

/** For each of the named calls: the median of what one takes, in milliseconds, and its processor time. */
export async function timeCalls(calls, { callsPerRound }) {
  const results = new Map(Object.keys(calls).map((name) => [name, { times: [], cpuUs: 0 }]));
  for (let round = 0; round < rounds; round++)
    for (const [name, call] of Object.entries(calls)) {
      const result = results.get(name);
      for (let i = 0; i < callsPerRound; i++) {
        const [start, before] = [performance.now(), ownCpuUs()];
        await call();
        result.times.push(performance.now() - start);
        result.cpuUs += ownCpuUs() - before;
      }
    }
  return new Map(
    [...results].map(([name, { times, cpuUs }]) => [name, { ms: median(times), cpuUs: cpuUs / times.length }]),
  );
}

export function median(values) {
  return quantile(values, 0.5);
}

export function quantile(values, part) {
  return [...values].sort((a, b) => a - b)[Math.floor(part * values.length)];
}

export function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
