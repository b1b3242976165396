// Runs the contracts of `holdfast/testing` with the test runner of this package.
import { describe, it } from "vitest";
import type { ContractCheck } from "../../src/testing/contracts/contract.ts";
import { diskContract } from "../../src/testing/contracts/disk.ts";
import type { DiskSite } from "../../src/testing/contracts/disk-world.ts";
import { osLockContract, type OsLockContractOptions, type OsLockSite } from "../../src/testing/contracts/os-lock.ts";

export function describeDiskContract(name: string, makeSite: () => Promise<DiskSite>): void {
  runChecks(`the disk contract on ${name}`, diskContract(makeSite));
}

export function describeOsLockContract(
  name: string,
  makeSite: () => Promise<OsLockSite>,
  options: OsLockContractOptions = {},
): void {
  runChecks(`the OS lock contract on ${name}`, osLockContract(makeSite, options));
}

function runChecks(title: string, checks: readonly ContractCheck[]): void {
  describe(title, () => {
    for (const { name, run } of checks) it(name, run);
  });
}
