// Steps that no other actor can notice. The explorer takes them at once, and at no other moment.
import { durabilityTouch, type SimCall } from "../sim/call.ts";
import type { Scenario } from "./scenario.ts";

/** True if the moment of the call makes no difference, because no other actor can see it or its answer is settled. */
export function isPrivate(scenario: Scenario, actor: string, call: SimCall<unknown>): boolean {
  if (scenario.powerCuts) return false;
  if (call.isSettled?.()) return true;
  const { touches } = call;
  if (touches.length === 0) return false;
  const { isUnseen } = scenario;
  if (isUnseen !== undefined && touches.every(({ what }) => isUnseen(call.operation, what))) return true;
  if (scenario.tempIsShared) return false;
  const own = `/temp/${actor}/`;
  return touches.every(({ what }) => what.startsWith(own) || what === durabilityTouch);
}

/** Throws if the scenario treats a step as private that is not. */
export function mustKeepOutOfOthersTemp(scenario: Scenario, actor: string, call: SimCall<unknown>): void {
  if (scenario.tempIsShared || scenario.powerCuts) return;
  for (const { what } of call.touches)
    for (const other of Object.keys(scenario.actors))
      if (other !== actor && `${what}/`.startsWith(`/temp/${other}/`))
        throw new Error(`${actor} looks into the temp of ${other}: the scenario must say tempIsShared`);
}
