// Where everything of an object store lies: the one place that knows its directories.
import { hash } from "node:crypto";

const readableLength = 40;

export class ObjectsLayout {
  readonly directory: string;

  constructor(directory: string) {
    this.directory = directory;
  }

  get record(): string {
    return `${this.directory}/objects.json`;
  }
  get buckets(): string {
    return `${this.directory}/buckets`;
  }
  /** Valid names of buckets are valid names of files, and no two of them differ in case only. */
  bucket(name: string): string {
    return `${this.buckets}/${name}`;
  }
  config(name: string): string {
    return `${this.bucket(name)}/config`;
  }
  get stagings(): string {
    return `${this.directory}/staging`;
  }
  get trash(): string {
    return `${this.directory}/trash`;
  }
  /** Directories that a session prepares. */
  staging(holder: string): string {
    return `${this.stagings}/${holder}`;
  }
}

/** One life of a bucket: a bucket that is deleted and made again has another one. */
export class IncarnationLayout {
  readonly directory: string;

  constructor(bucket: string, incarnation: string) {
    this.directory = `${bucket}/${incarnation}`;
  }

  /** While it is there, the bucket is: its removal deletes the bucket. */
  get keys(): string {
    return `${this.directory}/keys`;
  }
  get bodies(): string {
    return `${this.directory}/bodies`;
  }
  /** Bodies that a session has written. What no version names goes when its holder is dead. */
  bodiesOf(holder: string): string {
    return `${this.bodies}/${holder}`;
  }
  get index(): string {
    return `${this.directory}/index`;
  }
  /** Announcements of keys, one file for those of a moment. */
  get entries(): string {
    return `${this.index}/new`;
  }
  get runs(): string {
    return `${this.index}/runs`;
  }
  get manifests(): string {
    return `${this.index}/manifests`;
  }
  get uploads(): string {
    return `${this.directory}/uploads`;
  }
  /**
   * Keys that could not be read, as a repair has moved them away. While it has something, bodies that
   * no key names may belong to it.
   */
  get aside(): string {
    return `${this.directory}/aside`;
  }
  /**
   * 4,096 shards, so that no directory becomes too long to be listed. The beginning of the key is
   * for people; the hash makes the name unique, also where letters are folded.
   */
  key(key: string): string {
    const digest = hash("sha256", key);
    const readable = key
      .toLowerCase()
      .replaceAll(/[^a-z0-9._-]/g, "_")
      .slice(0, readableLength);
    return `${this.keys}/${digest.slice(0, 3)}/${readable}~${digest.slice(0, 32)}`;
  }
}
