// The subpath "holdfast/testing": the simulated world, the explorer, the bug bench, history checkers, and
// contracts for your own ports.
export { benchMutant, type BenchResult, type Mutant } from "./bug-bench.ts";
export type { ContractCheck } from "./contracts/contract.ts";
export { diskContract } from "./contracts/disk.ts";
export type { DiskSite } from "./contracts/disk-world.ts";
export { osLockContract, type OsLockContractOptions, type OsLockSite } from "./contracts/os-lock.ts";
export {
  explore,
  replay,
  type Exploration,
  type ExploreOptions,
  type Replayed,
  type Violation,
} from "./explorer/explore.ts";
export { actor, mustHold, valuesOf } from "./explorer/scenario.ts";
export type { Actor, ActorContext, Fact, Scenario, ScenarioSize } from "./explorer/scenario.ts";
export { formatTrace, type TraceRow } from "./explorer/trace.ts";
export {
  checkLinearizability,
  mustBeLinearizable,
  type Linearizability,
  type LinearizabilityOptions,
  type Model,
  type Operation,
} from "./history/linearizability.ts";
export {
  lockModel,
  type LockInput,
  type LockModelOptions,
  type LockOutput,
  type LockState,
} from "./history/lock-model.ts";
export { counterModel, registerModel } from "./history/register-model.ts";
export type {
  CounterInput,
  CounterOutput,
  RegisterInput,
  RegisterOutput,
  RegisterValue,
} from "./history/register-model.ts";
export type { FaultKind, Trouble } from "./sim/call.ts";
export type { InjectedErrors } from "./sim/disk-call.ts";
export type { CrashProfile, Profile } from "./sim/persistence.ts";
export type { Quirks, ServerQuirks } from "./sim/server.ts";
export { createSimulation, windowsQuirks, type Simulation, type SimulationOptions } from "./sim/simulation.ts";
