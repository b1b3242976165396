// The clock that all processes of one machine share: on Linux and macOS process.hrtime counts from
// the start of the machine, not of the process.
export function monotonicMs() {
  return Number(process.hrtime.bigint()) / 1e6;
}
