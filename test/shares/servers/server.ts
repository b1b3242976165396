// What a file server of the bed is to scenarios and guests.
import type { Guest } from "../guest.ts";

export interface Server {
  /** For reports: program, version, what is special about it. */
  readonly about: string;
  /** How long it keeps the locks and open files of a client that is silent, if it was told. */
  readonly leaseMs: number;
  /** Kernel modules of its clients. */
  readonly clientModules: readonly string[];
  start(): Promise<void>;
  /** Mounts the share in a guest at `path`, with options in the syntax of mount(8). */
  mount(guest: Guest, path: string, options: string): Promise<void>;
  /** The mount options that we advise. */
  readonly advised: string;
  /**
   * Ends it as by SIGKILL, and starts it again after `downMs`: what it only had in memory is lost.
   */
  restart(downMs: number): Promise<void>;
  stop(): Promise<void>;
  /** Configuration, address, user and password for a client that is a program beside the server; SMB only. */
  readonly login?: readonly string[];
}
