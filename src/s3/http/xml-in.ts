// XML from clients: a small tree of elements and texts. Parsing is strict, with limits on size,
// depth, and the number of elements and attributes. Documents with a DTD are refused, so there are
// no entities to expand.
import { setImmediate as nextTurn } from "node:timers/promises";
import { SaxesParser } from "saxes";
import { S3Error } from "./s3-error.ts";

export class XmlElement {
  readonly name: string;
  readonly children: XmlElement[] = [];
  text = "";

  constructor(name: string) {
    this.name = name;
  }

  find(name: string): XmlElement | undefined {
    return this.children.find((child) => child.name === name);
  }
  all(name: string): XmlElement[] {
    return this.children.filter((child) => child.name === name);
  }
  /** Returns the text of a child. */
  findText(name: string): string | undefined {
    return this.find(name)?.text;
  }
  /** Throws MalformedXML. */
  getText(name: string): string {
    const text = this.findText(name);
    if (text === undefined) throw malformed();
    return text;
  }
}

const depthMax = 10;
/**
 * The maximum number of elements. A list of 10,000 parts, each with number, ETag and checksums, has
 * fewer.
 */
const elementsMax = 60_000;

/**
 * The maximum number of attributes. Valid documents have them only for namespaces and grantee
 * types.
 */
const attributesMax = 10_000;
/** The maximum length of the prolog: a document type is refused only after it was read to its end. */
const prologCharactersMax = 64 * 1024;
const sliceCharacters = 64 * 1024;

/** Returns the root element, whose name must be one of `roots`. Throws MalformedXML. */
export function parseXml(bytes: Uint8Array, ...roots: readonly string[]): XmlElement {
  const reader = new XmlReader();
  for (const slice of slicesOf(bytes)) reader.write(slice);
  return reader.end(roots);
}

/** Like `parseXml`, for a document that may be large: other requests run in between. */
export async function readXml(bytes: Uint8Array, ...roots: readonly string[]): Promise<XmlElement> {
  const reader = new XmlReader();
  for (const slice of slicesOf(bytes)) {
    reader.write(slice);
    if (slice.length === sliceCharacters) await nextTurn();
  }
  return reader.end(roots);
}

class XmlReader {
  readonly #parser = new SaxesParser({ xmlns: false });
  readonly #open: XmlElement[] = [];
  #root: XmlElement | undefined;
  #elements = 0;
  #attributes = 0;
  #characters = 0;

  constructor() {
    const parser = this.#parser;
    parser.on("error", (cause) => {
      throw malformed(cause);
    });
    parser.on("doctype", () => {
      throw malformed();
    });
    parser.on("attribute", () => {
      if (++this.#attributes > attributesMax) throw malformed();
    });
    parser.on("opentag", ({ name }) => this.#begin(new XmlElement(localName(name))));
    parser.on("closetag", () => void this.#open.pop());
    const addText = (text: string): void => {
      const element = this.#open.at(-1);
      if (element !== undefined) element.text += text;
    };
    parser.on("text", addText);
    parser.on("cdata", addText);
  }

  write(text: string): void {
    this.#characters += text.length;
    this.#parser.write(text);
    if (this.#root === undefined && this.#characters >= prologCharactersMax) throw malformed();
  }

  end(roots: readonly string[]): XmlElement {
    this.#parser.close();
    if (this.#root === undefined || !roots.includes(this.#root.name)) throw malformed();
    return this.#root;
  }

  #begin(element: XmlElement): void {
    if (this.#open.length >= depthMax || ++this.#elements > elementsMax) throw malformed();
    this.#open.at(-1)?.children.push(element);
    this.#root ??= element;
    this.#open.push(element);
  }
}

function* slicesOf(bytes: Uint8Array): Generator<string> {
  const text = decodeUtf8(bytes);
  for (let at = 0; at < text.length; at += sliceCharacters) yield text.slice(at, at + sliceCharacters);
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw malformed(cause);
  }
}

function localName(name: string): string {
  return name.slice(name.indexOf(":") + 1);
}

export function malformed(cause?: unknown): Error {
  return new S3Error("MalformedXML", { cause });
}
