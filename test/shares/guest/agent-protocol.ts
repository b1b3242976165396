// What the bed and the agent in a guest say to each other, one JSON line each.

/** The only port that the bed leaves open when it cuts a guest off. */
export const agentPort = 7700;

export type AgentOrder =
  | {
      readonly id: number;
      readonly order: "start";
      readonly module: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
    }
  /** To a script that was started under this id. */
  | { readonly id: number; readonly order: "signal"; readonly signal: NodeJS.Signals }
  | { readonly id: number; readonly order: "send"; readonly message: unknown }
  | { readonly id: number; readonly order: "shell"; readonly command: string }
  /** What does its monotonic clock say? */
  | { readonly id: number; readonly order: "clock" };

export type AgentReport =
  | { readonly id: number; readonly kind: "line"; readonly line: string }
  | { readonly id: number; readonly kind: "stderr"; readonly text: string }
  | { readonly id: number; readonly kind: "clock"; readonly ms: number }
  | { readonly id: number; readonly kind: "end"; readonly code: number | null; readonly signal: string | null }
  | {
      readonly id: number;
      readonly kind: "ran";
      readonly code: number;
      readonly stdout: string;
      readonly stderr: string;
    };
