// Begins a run with the files that keep a core busy for half a minute each. Otherwise they would come last,
// because they are short, and the other core would wait for them.
import { BaseSequencer, type TestSpecification } from "vitest/node";

const longest = ["test/testing/scenarios.test.ts", "test/testing/bug-bench.test.ts", "test/processes/torture.test.ts"];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification): boolean => longest.some((path) => moduleId.endsWith(path));
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}
