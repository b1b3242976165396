// Types of events over time: a validator for what is appended now, and how to lift what older versions wrote.
import type { NewEvent } from "../../common.ts";

/** Per type: a Standard Schema validator, and how to lift older versions. A type without an entry passes as it is. */
export type EventSchemas<E extends NewEvent> = {
  readonly [T in E["type"]]?: {
    /** Asked at each append, never at a read. What it gives back is what is stored. */
    readonly schema?: StandardSchema | undefined;
    /** Stored with the event. Raise it when the shape of `data` changes. Default 1. */
    readonly version?: number | undefined;
    /** Lifts what an older version has stored to the current one, at each read. It gets a copy, and may change it. */
    readonly upcast?: ((data: unknown, fromVersion: number) => Extract<E, { type: T }>["data"]) | undefined;
  };
};
/** The part of Standard Schema v1 that is used. */
export interface StandardSchema {
  readonly "~standard": { readonly version: 1; readonly vendor: string; validate(value: unknown): unknown };
}
