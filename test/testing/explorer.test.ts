import { describe, expect, it } from "vitest";
import { explore, replay } from "../../src/testing/explorer/explore.ts";
import { actor, mustHold, valuesOf, type Actor, type Scenario } from "../../src/testing/explorer/scenario.ts";

/** Reads a number, adds one, writes it back, with nothing to keep the others out. */
const increment: Actor = {
  run: async ({ name, ports: { disk }, note }) => {
    const before = Number(Buffer.from(await disk.readFile("/counter", 100)).toString());
    await disk.createFile(`/temp/${name}/next`, Buffer.from(String(before + 1)), { sync: false });
    await disk.rename(`/temp/${name}/next`, "/counter");
    note("added");
  },
};

const lostUpdate: Scenario = {
  name: "lost update",
  about: "Two add one to a counter without a lock.",
  setup: async ({ disk }) => {
    for (const path of ["/temp", "/temp/ada", "/temp/bob"]) await disk.mkdir(path);
    await disk.createFile("/counter", Buffer.from("0"), { sync: true });
  },
  actors: { ada: increment, bob: increment },
  audit: async ({ disk }, facts) => {
    const count = Number(Buffer.from(await disk.readFile("/counter", 100)).toString());
    mustHold(
      count === valuesOf(facts, "added").length,
      `${valuesOf(facts, "added").length} were added, the counter is ${count}`,
    );
  },
};

/**
 * Ada writes a row of marks; Bob looks at four moments. Only if each look falls into its own narrow
 * gap does Bob see the planted pattern.
 */
function plantedBug(): Scenario {
  const marks = 12;
  const gaps = [2, 5, 8, 11];
  return {
    name: "planted bug",
    about: "One schedule in thousands: four looks that must each fall between two certain steps of another.",
    setup: async ({ disk }) => disk.mkdir("/marks"),
    actors: {
      ada: {
        run: async ({ ports: { disk } }) => {
          for (let mark = 1; mark <= marks; mark++) await disk.mkdir(`/marks/${mark}`);
        },
      },
      bob: {
        run: async ({ ports: { disk }, note }) => {
          const seen: number[] = [];
          for (const _gap of gaps) seen.push((await disk.list("/marks")).length);
          note("saw", seen.join());
        },
      },
    },
    check: (facts) => mustHold(!valuesOf(facts, "saw").includes(gaps.join()), "the planted bug was found"),
  };
}

describe("the explorer", () => {
  it("finds a lost update and prints the shortest trace as a table", async () => {
    const { violation, exhausted } = await explore(lostUpdate);
    expect(violation?.message).toBe("2 were added, the counter is 1");
    expect(exhausted).toBe(false);
    expect(violation?.table).toMatch(/^step +actor +operation +on +answer\n1 /);
    // Two reads, then two times create, write and rename: nothing that could be left out.
    expect(violation?.trace).toHaveLength(8);
  });

  it("replays a violation from its seed", async () => {
    const { violation } = await explore(lostUpdate);
    const again = await replay(lostUpdate, violation?.seed ?? "");
    expect(again.violation).toBe(violation?.message);
    expect(again.table).toBe(violation?.table);
  });

  it("refuses a seed of another scenario", async () => {
    await expect(replay(lostUpdate, "9.9.9")).rejects.toThrow(/does not fit/);
  });

  it("finds a planted bug that hundreds of random schedules do not show", async () => {
    const random = await explore(plantedBug(), { random: { seed: 7, runs: 300 } });
    expect(random.violation).toBeUndefined();
    const { violation, states } = await explore(plantedBug());
    expect(violation?.message).toBe("the planted bug was found");
    expect(states).toBeGreaterThan(100);
  });

  it("says so when no actor can go on", async () => {
    const deadlock: Scenario = {
      name: "deadlock",
      about: "Two take two locks in opposite order.",
      actors: Object.fromEntries(
        [
          ["ada", ["/a", "/b"]],
          ["bob", ["/b", "/a"]],
        ].map(([name, paths]) => [
          name as string,
          {
            run: async ({ ports }) => {
              for (const path of paths as string[]) await (await ports.osLock.open(path)).lock();
            },
          } satisfies Actor,
        ]),
      ),
    };
    const { violation } = await explore(deadlock);
    expect(violation?.message).toMatch(/nothing can go on: .*wait for ever/);
  });

  it("counts an actor that fails as a violation", async () => {
    const failing: Scenario = {
      name: "failing",
      about: "An actor that did not expect an error.",
      actors: { ada: { run: async ({ ports }) => void (await ports.disk.readFile("/missing", 1)) } },
    };
    expect((await explore(failing)).violation?.message).toMatch(/ada failed: read \/missing: ENOENT/);
  });

  it("tries nothing twice: the same scenario gives the same figures", async () => {
    const { ms: _first, ...first } = await explore({ ...lostUpdate, audit: async () => undefined });
    const { ms: _second, ...second } = await explore({ ...lostUpdate, audit: async () => undefined });
    expect(second).toEqual(first);
    expect(first.exhausted).toBe(true);
  });

  it("misses nothing by leaving out orders that no actor can tell apart", async () => {
    // With a bound that is never reached no order is left out: the ends of all schedules must be
    // the same.
    for (const options of [{}, { preemptionsMax: 1000 }]) {
      const ends = new Set<string>();
      await explore(
        {
          ...lostUpdate,
          actors: {
            ada: increment,
            bob: increment,
            cleo: actor({ run: async ({ ports }) => void (await ports.disk.list("/")) }),
          },
          audit: async ({ disk }, facts) => {
            ends.add(
              `${Buffer.from(await disk.readFile("/counter", 100)).toString()} ${facts.map((fact) => fact.actor).join()}`,
            );
          },
        },
        options,
      );
      expect([...ends].sort()).toEqual(["1 ada,bob", "1 bob,ada", "2 ada,bob", "2 bob,ada"]);
    }
  });

  it("lets actors that are alike begin in one order, and finds all that any of them can do", async () => {
    const seenBy = async (alike?: readonly string[]): Promise<{ states: number; seen: Set<string> }> => {
      const seen = new Set<string>();
      const names = ["ada", "bob", "cleo"];
      const look: Actor = {
        run: async ({ name, ports: { disk }, note }) => {
          const before = (await disk.list("/marks")).length;
          await disk.mkdir(`/marks/${name}`);
          note("saw", `${before} and ${(await disk.list("/marks")).length}`);
        },
      };
      const { states, exhausted } = await explore({
        name: "three that mark",
        about: "Each looks, makes a mark, and looks again.",
        setup: async ({ disk }) => disk.mkdir("/marks"),
        actors: Object.fromEntries(names.map((name) => [name, look])),
        ...(alike === undefined ? {} : { alike }),
        // Whichever actor has seen it.
        check: (facts) => void seen.add(valuesOf<string>(facts, "saw").join("; ")),
      });
      expect(exhausted).toBe(true);
      return { states, seen };
    };
    const all = await seenBy();
    const fewer = await seenBy(["ada", "bob", "cleo"]);
    expect(fewer.seen).toEqual(all.seen);
    expect(fewer.states).toBeLessThan(all.states / 2);
  });

  it("refuses actors as alike of which one may be killed and the other not", async () => {
    await expect(explore({ ...lostUpdate, alike: ["ada", "bob"], killsMax: 1, mortal: ["bob"] })).rejects.toThrow(
      /not alike: ada,bob/,
    );
    const { violation } = await explore({ ...lostUpdate, alike: ["ada", "bob"] });
    expect(violation?.message).toBe("2 were added, the counter is 1");
    expect(violation?.trace).toHaveLength(8);
  });

  it("tells a step that leads to an answer from one that does not, also when unseen steps lie between", async () => {
    const teller: Actor = {
      run: async ({ name, ports: { disk }, note }) => {
        await disk.mkdir(`/made-by-${name}`);
        await disk.createFile(`/temp/${name}/private`, Buffer.from("x"), { sync: false });
        note("told");
      },
    };
    for (const options of [{}, { preemptionsMax: 1000 }]) {
      const orders = new Set<string>();
      const made = new Set<string>();
      const scenario: Scenario = {
        name: "two tellers",
        about: "Each does something visible, then something private, then tells; one may be killed anywhere.",
        setup: async ({ disk }) => {
          for (const path of ["/temp", "/temp/ada", "/temp/bob"]) await disk.mkdir(path);
        },
        actors: { ada: teller, bob: teller },
        killsMax: 1,
        audit: async ({ disk }, facts) => {
          const told = facts.filter(({ what }) => what === "told").map(({ actor: name }) => name);
          orders.add(told.join());
          made.add(
            `${(await disk.canOpen("/made-by-ada")) ? "made" : "not made"}, ${told.includes("ada") ? "told" : "not told"}`,
          );
        },
      };
      expect((await explore(scenario, options)).exhausted).toBe(true);
      expect([...orders].sort()).toEqual(["ada", "ada,bob", "bob", "bob,ada"]);
      expect([...made].sort()).toEqual(["made, not told", "made, told", "not made, not told"]);
    }
  });

  it("takes two states for different when a file was stamped at different times", async () => {
    const stamped = new Set<number>();
    const scenario: Scenario = {
      name: "stamps",
      about: "A file is made before or after a pause.",
      pauses: { ms: 5000, count: 1, actors: ["ada"] },
      actors: {
        ada: { run: async ({ ports: { disk } }) => disk.mkdir("/file") },
        bob: { run: async ({ ports: { clock } }) => clock.sleep(10_000) },
      },
      audit: async ({ disk }) => void stamped.add((await disk.stat("/file")).mtimeMs),
    };
    await explore(scenario);
    expect(stamped.size).toBe(2);
  });

  it("finds with one preemption what needs one, and not with none", async () => {
    expect((await explore(lostUpdate, { preemptionsMax: 0 })).violation).toBeUndefined();
    expect((await explore(lostUpdate, { preemptionsMax: 1 })).violation?.message).toBe(
      "2 were added, the counter is 1",
    );
  });

  it("only leaves schedules out when preemptions are bounded, and does not call that exhausted", async () => {
    const endsWith = async (preemptionsMax?: number): Promise<{ ends: Set<string>; exhausted: boolean }> => {
      const ends = new Set<string>();
      const { exhausted } = await explore(
        {
          ...lostUpdate,
          actors: { ada: increment, bob: increment },
          killsMax: 1,
          audit: async ({ disk }, facts) => {
            const count = Buffer.from(await disk.readFile("/counter", 100)).toString();
            ends.add(`${count} ${facts.map(({ actor: name, what }) => `${name} ${what}`).join()}`);
          },
        },
        { preemptionsMax },
      );
      return { ends, exhausted };
    };
    const all = await endsWith();
    let fewer = new Set<string>();
    for (const preemptionsMax of [0, 1, 2]) {
      const { ends, exhausted } = await endsWith(preemptionsMax);
      expect([...ends].filter((end) => !all.ends.has(end))).toEqual([]);
      expect([...fewer].filter((end) => !ends.has(end))).toEqual([]);
      // Two are all that fit into so few steps.
      expect(exhausted).toBe(preemptionsMax === 2);
      fewer = ends;
    }
    expect((await endsWith(1000)).ends).toEqual(all.ends);
    expect(all.exhausted).toBe(true);
  });

  it("ends at the given number of states also in a schedule that never ends", async () => {
    const endless: Scenario = {
      name: "endless",
      about: "One asks again and again for what never comes.",
      actors: {
        ada: {
          run: async ({ ports: { clock, disk } }) => {
            while (!(await disk.canOpen("/never"))) await clock.sleep(10);
          },
        },
      },
    };
    expect(await explore(endless, { statesMax: 100 })).toMatchObject({ exhausted: false, states: 100 });
  });

  it("stops at the given number of states and does not call that exhausted", async () => {
    const { exhausted, violation } = await explore({ ...lostUpdate, audit: async () => undefined }, { statesMax: 3 });
    expect(violation).toBeUndefined();
    expect(exhausted).toBe(false);
  });

  it("carries out what an actor has begun and not waited for", async () => {
    const careless: Scenario = {
      name: "careless",
      about: "One acknowledges a file, and then removes it without waiting for that.",
      actors: {
        ada: {
          run: async ({ ports: { disk } }) => {
            await disk.createFile("/order", Buffer.from("1"), { sync: true });
            void disk.unlink("/order");
          },
        },
      },
      audit: async ({ disk }) => void (await disk.readFile("/order", 100)),
    };
    expect((await explore(careless)).violation?.message).toMatch(/ENOENT/);
  });

  it("kills also in the middle of a write, and leaves half of it", async () => {
    const torn: Scenario = {
      name: "torn",
      about: "One writes to a file in place, and may be killed.",
      setup: ({ disk }) => disk.createFile("/order", Buffer.from("old!"), { sync: true }),
      killsMax: 1,
      actors: {
        ada: {
          run: async ({ ports: { disk } }) => {
            const file = await disk.open("/order", "write");
            await file.write(0, Buffer.from("NEW?"));
            await file.close();
          },
        },
      },
      audit: async ({ disk }) => {
        const text = Buffer.from(await disk.readFile("/order", 100)).toString();
        mustHold(text === "old!" || text === "NEW?", `it says ${text}`);
      },
    };
    expect((await explore(torn)).violation?.message).toBe("it says NEd!");
  });

  it("says so when a name goes that the scenario calls permanent, also if the actor does not care", async () => {
    const swallowed: Scenario = {
      name: "swallowed",
      about: "One removes what is said to stay, and catches whatever comes of it.",
      setup: ({ disk }) => disk.createFile("/order", Buffer.from("1"), { sync: true }),
      isPermanent: (path) => path === "/order",
      actors: { ada: { run: ({ ports: { disk } }) => disk.unlink("/order").catch(() => undefined) } },
    };
    expect((await explore(swallowed)).violation?.message).toMatch(/permanent/);
  });

  it("cuts the power in random schedules too", async () => {
    const unsynced: Scenario = {
      name: "unsynced",
      about: "One acknowledges what is not durable.",
      powerCuts: true,
      actors: {
        ada: {
          run: async ({ ports: { disk }, note }) => {
            await disk.createFile("/order", Buffer.from("1"), { sync: false });
            note("acknowledged");
            await disk.list("/");
          },
        },
      },
      audit: async ({ disk }, facts) => {
        if (valuesOf(facts, "acknowledged").length > 0) await disk.readFile("/order", 100);
      },
    };
    const { violation, crashStates } = await explore(unsynced, { random: { seed: 1, runs: 5 } });
    expect(violation?.message).toMatch(/after a power cut/);
    expect(crashStates).toBeGreaterThan(0);
  });

  it.each([
    ["ada", "bob"],
    ["bob", "ada"],
  ])("finds with a bound on preemptions what is within it, also with %s first", async (...order) => {
    const all: Record<string, Actor> = {
      // Two steps, between which the other must come.
      ada: {
        run: async ({ ports: { disk } }) => {
          await disk.mkdir("/half");
          await disk.rmdir("/half");
        },
      },
      bob: { run: async ({ ports: { disk }, note }) => note("saw", await disk.list("/")) },
    };
    const peek: Scenario = {
      name: "peek",
      about: "One looks while another is halfway.",
      actors: Object.fromEntries(order.map((name) => [name, all[name]!])),
      check: (facts) =>
        mustHold(
          valuesOf<string[]>(facts, "saw").every((names) => !names.includes("half")),
          "seen",
        ),
    };
    expect((await explore(peek, { preemptionsMax: 1 })).violation?.message).toBe("seen");
  });

  it("refuses a scenario that looks into a temp directory which it calls private", async () => {
    const nosy: Scenario = {
      name: "nosy",
      about: "Bob lists what Ada has in her temp directory.",
      setup: async ({ disk }) => {
        for (const path of ["/temp", "/temp/ada", "/temp/bob"]) await disk.mkdir(path);
      },
      actors: {
        ada: { run: async ({ ports }) => ports.disk.createFile("/temp/ada/x", Buffer.from("x"), { sync: false }) },
        bob: { run: async ({ ports }) => void (await ports.disk.list("/temp/ada")) },
      },
    };
    await expect(explore(nosy)).rejects.toThrow(/tempIsShared/);
  });
});
