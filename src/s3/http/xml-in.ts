// XML that a client sends: a small tree of elements and texts. Strict, and bounded in size, depth
// and number of elements; documents with a DTD are refused, so there are no entities to expand.
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
  /** The text of a child. */
  findText(name: string): string | undefined {
    return this.find(name)?.text;
  }
  /** MalformedXML. */
  getText(name: string): string {
    const text = this.findText(name);
    if (text === undefined) throw malformed();
    return text;
  }
}

const depthMax = 10;
/** The list of 10,000 parts, each with its number, ETag and checksums, has fewer. */
const elementsMax = 60_000;

/** The root element, whose name must be one of `roots`. MalformedXML. */
export function parseXml(bytes: Uint8Array, ...roots: readonly string[]): XmlElement {
  const parser = new SaxesParser({ xmlns: false });
  const open: XmlElement[] = [];
  let root: XmlElement | undefined;
  let count = 0;
  parser.on("error", (cause) => {
    throw malformed(cause);
  });
  parser.on("doctype", () => {
    throw malformed();
  });
  parser.on("opentag", ({ name }) => {
    const element = new XmlElement(localName(name));
    if (open.length >= depthMax || ++count > elementsMax) throw malformed();
    open.at(-1)?.children.push(element);
    root ??= element;
    open.push(element);
  });
  parser.on("closetag", () => void open.pop());
  const addText = (text: string): void => {
    const element = open.at(-1);
    if (element !== undefined) element.text += text;
  };
  parser.on("text", addText);
  parser.on("cdata", addText);
  parser.write(decodeUtf8(bytes)).close();
  if (root === undefined || !roots.includes(root.name)) throw malformed();
  return root;
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
