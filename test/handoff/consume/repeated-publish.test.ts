// A producer that was killed while it published into a group publishes the same again, is told that it is published,
// and goes on with the next ticket of the group: that one comes later, wherever the first publish was broken off.
import { expect, it } from "vitest";
import { countCalls, TrialWorld, volumes, type Trial } from "./trials.ts";

const group = "customer 7";
const publishing: Trial = {
  what: "publishes into a group",
  prepare: async () => undefined,
  run: async (producer) => await producer.publish({ "a.txt": "first" }, { key: "first", group }),
  keys: ["first", "second"],
};

it.each(volumes)(
  "a publish that is repeated after a kill keeps its place in the group, on a %s disk",
  async (volume) => {
    const calls = await countCalls(volume, publishing);
    const answers = new Set<boolean>();
    for (let at = 1; at <= calls; at++) {
      const trials = new TrialWorld(volume);
      await trials.prepare(publishing);
      const dying = await trials.open("worker");
      await trials.world.killAtCall("worker", at, () => publishing.run(dying));
      trials.world.kill("worker");
      const producer = await trials.open("producer");
      const { duplicate } = await trials.step(producer.publish({ "a.txt": "first" }, { key: "first", group }));
      answers.add(duplicate);
      await trials.step(producer.publish({ "a.txt": "second" }, { key: "second", group }));
      await trials.workOff(producer);
      expect(trials.handled, `killed at call ${at} of ${calls}`).toEqual(publishing.keys);
      await trials.step(producer.close());
      await trials.check(publishing);
    }
    expect(answers).toEqual(new Set([false, true]));
  },
);
