// A key as one operation at a time would leave it: the model that histories are compared with.
import type { Model } from "../../src/testing/history/linearizability.ts";
import type { KeyInput, KeyOutput } from "../../harness/processes/objects/key-work.ts";

interface ModelVersion {
  readonly body: string | null;
  readonly isNull: boolean;
  readonly tag?: string;
}
/** The newest first. */
type KeyModelState = readonly ModelVersion[];

interface Step {
  readonly state: KeyModelState;
  readonly output: KeyOutput;
}

/**
 * The answer of a put or a deletion says whether it made a null version: the bucket's setting may
 * change during the call. `isNull` applies to calls that never returned.
 *
 * `atEnd` are the bodies of the last listing, newest first. They shorten the search by orders of
 * magnitude and refute nothing else: a version is only added in front, so the versions of a state
 * that survive to the end must be the oldest of those in the listing.
 */
export function keyModel(isNull: boolean, atEnd: readonly string[] = []): Model<KeyModelState, KeyInput, KeyOutput> {
  const survivors = atEnd.filter((body) => body !== marker);
  const canStillEndSo = (state: KeyModelState): boolean => {
    const present = state.flatMap(({ body }) => (body !== null && survivors.includes(body) ? [body] : []));
    return present.every((body, index) => body === survivors.at(index - present.length));
  };
  return {
    initial: [],
    key: (state) => JSON.stringify(state),
    isIdle: ({ kind }, { isRefused }) => ["get", "list", "list versions", "tags"].includes(kind) || isRefused === true,
    apply: (state, input, output) => {
      const after = stepOf(state, input, output ?? { isNull });
      if (output !== undefined && JSON.stringify(after.output) !== JSON.stringify(output)) return undefined;
      return canStillEndSo(after.state) ? after.state : undefined;
    },
  };
}

const marker = "(marker)";
const refused: KeyOutput = { isRefused: true };

function stepOf(state: KeyModelState, input: KeyInput, { isNull = false, isRemoval = false }: KeyOutput): Step {
  const [newest] = state;
  const current = newest?.body ?? null;
  switch (input.kind) {
    case "put":
      return { state: added(state, { body: input.body, isNull }), output: { isNull } };
    case "put if":
      if (current !== input.expected) return { state, output: refused };
      return { state: added(state, { body: input.body, isNull }), output: { isNull } };
    case "delete":
      if (isRemoval) return { state: state.filter((version) => !version.isNull), output: { isRemoval } };
      return { state: added(state, { body: null, isNull }), output: { isNull } };
    case "delete version": {
      const { body } = input;
      return { state: state.filter((each) => (body === null ? !each.isNull : each.body !== body)), output: {} };
    }
    case "tag":
      if (newest === undefined || newest.body === null) return { state, output: refused };
      return { state: [{ ...newest, tag: input.tag }, ...state.slice(1)], output: {} };
    case "tags":
      if (newest === undefined || newest.body === null) return { state, output: refused };
      return { state, output: { found: newest.tag === undefined ? [] : [newest.tag] } };
    case "get":
    case "list":
      return { state, output: { found: current === null ? [] : [current] } };
    case "list versions":
      return { state, output: { found: state.map(({ body }) => body ?? marker) } };
  }
}

/** A null version takes the place of the one before it. */
function added(state: KeyModelState, version: ModelVersion): KeyModelState {
  return [version, ...state.filter((each) => !version.isNull || !each.isNull)];
}
