// Types of events over time: a validator for what is appended now, and how to lift what older versions wrote.
import type { NewEvent } from "../common.ts";

/** Per type: a Standard Schema validator, and how to lift older versions. */
export type EventSchemas<E extends NewEvent> = {
  readonly [T in E["type"]]?: {
    readonly schema?: StandardSchema | undefined;
    readonly version?: number | undefined;
    readonly upcast?: ((data: unknown, fromVersion: number) => Extract<E, { type: T }>["data"]) | undefined;
  };
};
/** The part of Standard Schema v1 that is used. */
export interface StandardSchema {
  readonly "~standard": { readonly version: 1; readonly vendor: string; validate(value: unknown): unknown };
}
