// The layout of an object store: only this file knows the names of its directories.
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
  /**
   * A bucket's directory has its name: bucket names are valid file names in lower case, so no two
   * differ only in case.
   */
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
  /** The file that reserves space for removals. */
  get reserve(): string {
    return `${this.directory}/reserve`;
  }
  /** Where a session prepares directories. */
  staging(holder: string): string {
    return `${this.stagings}/${holder}`;
  }
}

/** One life of a bucket. A bucket that is deleted and created again gets a new incarnation. */
export class IncarnationLayout {
  readonly directory: string;

  constructor(bucket: string, incarnation: string) {
    this.directory = `${bucket}/${incarnation}`;
  }

  /** The bucket exists as long as this directory does: removing it deletes the bucket. */
  get keys(): string {
    return `${this.directory}/keys`;
  }
  get bodies(): string {
    return `${this.directory}/bodies`;
  }
  /** Bodies that a session wrote. Once its holder is dead, those that no version names are removed. */
  bodiesOf(holder: string): string {
    return `${this.bodies}/${holder}`;
  }
  get index(): string {
    return `${this.directory}/index`;
  }
  /** Announcements of keys; one file holds the keys that were announced together. */
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
   * Unreadable keys that a repair moved aside. While the directory is not empty, no body is
   * removed, because it may belong to one of them.
   */
  get aside(): string {
    return `${this.directory}/aside`;
  }
  /**
   * 4,096 shards keep every directory short enough to list. The beginning of the key is for people;
   * the hash makes the name unique, even where the disk folds case.
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
