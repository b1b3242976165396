// A key as one operation at a time would leave it: the model that histories are compared with.
import type { Model } from "../../src/testing/history/linearizability.ts";
import type { KeyInput, KeyOutput } from "../../src/testing/processes/objects/key-work.ts";

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
 * Whether a put or a deletion is one of a null version, its answer says: the setting of the bucket
 * may change while it is under way. `isNull`: of one that was not answered.
 */
export function keyModel(isNull: boolean): Model<KeyModelState, KeyInput, KeyOutput> {
  return {
    initial: [],
    key: (state) => JSON.stringify(state),
    isIdle: ({ kind }, { isRefused }) => ["get", "list", "list versions", "tags"].includes(kind) || isRefused === true,
    apply: (state, input, output) => {
      const after = stepOf(state, input, output ?? { isNull });
      if (output !== undefined && JSON.stringify(after.output) !== JSON.stringify(output)) return undefined;
      return after.state;
    },
  };
}

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
      return { state, output: { found: state.map(({ body }) => body ?? "(marker)") } };
  }
}

/** A null version takes the place of the one before it. */
function added(state: KeyModelState, version: ModelVersion): KeyModelState {
  return [version, ...state.filter((each) => !version.isNull || !each.isNull)];
}
