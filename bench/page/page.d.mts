export const noRun: string;
export function blocksFor(result: Result | undefined): Record<"run" | "rates" | "growth", string>;
export function curveName(part: string): string;
export interface Result {
  readonly date: string;
  readonly command: string;
  readonly isQuick: boolean;
  readonly machine: Record<"processor" | "system" | "fileSystem", string> &
    Record<"cores" | "memoryGb" | "load", number>;
  readonly versions: Record<string, string>;
  readonly comparisons: readonly Comparison[];
  readonly curves: readonly Curve[];
}
interface Comparison {
  readonly title: string;
  readonly baseline: string;
  readonly rows: readonly Rate[];
}
interface Rate extends Record<"rateRatio" | "cpuRatio" | "rate" | "cpuUs", number | null> {
  readonly name: string;
  readonly operations: string;
  readonly notes: readonly string[];
}
export interface Curve {
  readonly part: string;
  readonly unit: string;
  readonly calls: readonly {
    readonly name: string;
    readonly points: readonly Record<"size" | "ms" | "cpuUs", number>[];
  }[];
}
