// The API that a program sees, evaluated once in a fresh runtime before any
// program. Its value is {start, settle, finish}, called by guest.go.
//
// It speaks to the host in lines through print, the engine's own function:
// one letter, then text without line breaks. A program can reach none of what
// is captured here; what it does to prototypes must not break this code, so
// nothing below relies on iterators, on array methods or on assignment to
// elements of arrays that a setter could catch.
(function (host) {
  "use strict";
  const {apply, construct, ownKeys, getPrototypeOf, setPrototypeOf, defineProperty, get: reflectGet} = Reflect;
  const {create, freeze, keys, getOwnPropertyDescriptor: descriptorOf} = Object;
  const {parse, stringify} = JSON;
  const {isArray} = Array;
  const print = globalThis.print;
  const NativePromise = Promise, PromiseProto = Promise.prototype, nativeThen = PromiseProto.then;
  const ErrorCtor = Error, TypeErrorCtor = TypeError, BigIntCtor = BigInt, StringCtor = String, ProxyCtor = Proxy;
  const ObjectProto = Object.prototype;
  const call = (f) => (self, a, b) => apply(f, self, [a, b]);
  const slice = call(StringCtor.prototype.slice), charCodeAt = call(StringCtor.prototype.charCodeAt), indexOf = call(StringCtor.prototype.indexOf);
  const startsWith = call(StringCtor.prototype.startsWith), trim = call(StringCtor.prototype.trim);
  const hasOwn = call(ObjectProto.hasOwnProperty);
  const functionText = call(Function.prototype.toString);
  const mapGet = call(Map.prototype.get), mapSet = call(Map.prototype.set), mapDelete = call(Map.prototype.delete);
  const mapForEach = call(Map.prototype.forEach), setForEach = call(Set.prototype.forEach);
  const weakAdd = call(WeakSet.prototype.add), weakHas = call(WeakSet.prototype.has);
  const regExpText = call(RegExp.prototype.toString);
  const valueOf = {number: call(Number.prototype.valueOf), string: call(StringCtor.prototype.valueOf), boolean: call(Boolean.prototype.valueOf)};
  const protos = {
    error: ErrorCtor.prototype, map: Map.prototype, set: Set.prototype, regexp: RegExp.prototype,
    typed: getPrototypeOf(Uint8Array.prototype), buffer: ArrayBuffer.prototype, view: DataView.prototype,
    weakmap: WeakMap.prototype, weakset: WeakSet.prototype, number: Number.prototype, string: StringCtor.prototype, boolean: Boolean.prototype,
  };
  const typedLength = call(descriptorOf(protos.typed, "length").get);
  const bufferLength = call(descriptorOf(ArrayBuffer.prototype, "byteLength").get);
  const {iterator, toPrimitive} = Symbol, asyncIterator = Symbol.asyncIterator;
  const imul = Math.imul;

  // What the engine adds for itself, and every way to compile text.
  {
    const made = [function () {}, async function () {}, function* () {}, async function* () {}];
    for (let i = 0; i < made.length; i++) delete getPrototypeOf(made[i]).constructor;
    const gone = ["std", "os", "bjson", "print", "scriptArgs", "console", "performance", "navigator", "gc", "setTimeout", "setInterval",
      "clearTimeout", "clearInterval", "eval", "Function", "SharedArrayBuffer", "Atomics", "QJS_PROXY_VALUE", "DOMException"];
    for (let i = 0; i < gone.length; i++) delete globalThis[gone[i]];
  }

  const hidden = (o, k, v) => defineProperty(o, k, {value: v, writable: true, enumerable: false, configurable: true});
  const fixed = (o, k, v) => defineProperty(o, k, {value: v, writable: false, enumerable: true, configurable: false});

  function isA(v, proto) {
    for (let p = v, i = 0; p !== null && i < 1000; i++) {
      p = getPrototypeOf(p);
      if (p === proto) return true;
    }
    return false;
  }
  const isObject = (v) => typeof v === "object" ? v !== null : typeof v === "function";
  const isPromise = (v) => isObject(v) && isA(v, PromiseProto);

  // ---- Rejections that nobody handles -------------------------------------
  //
  // The engine reports none. A promise is handled once somebody reads its
  // "constructor": await, then, Promise.all and return in an async function
  // all do. Promises made by Promise's own functions, by then and by the calls
  // below are watched; the host turns async functions into ones that use them.
  const handled = new WeakSet(), rejected = new Map();
  let quiet = false;
  function markHandled(p) {
    if (!quiet && isObject(p)) { weakAdd(handled, p); mapDelete(rejected, p); }
  }
  function watch(p) {
    const before = quiet;
    quiet = true;
    try {
      apply(nativeThen, p, [undefined, (e) => { if (!weakHas(handled, p)) mapSet(rejected, p, e); }]);
    } finally { quiet = before; }
    return p;
  }
  function WatchedPromise(executor) {
    if (!new.target) throw new TypeErrorCtor("Promise must be called with new");
    return watch(construct(NativePromise, [executor], new.target === WatchedPromise ? NativePromise : new.target));
  }
  {
    const names = ownKeys(NativePromise);
    for (let i = 0; i < names.length; i++) {
      if (names[i] !== "prototype") defineProperty(WatchedPromise, names[i], descriptorOf(NativePromise, names[i]));
    }
    defineProperty(WatchedPromise, "prototype", {value: PromiseProto, writable: false, enumerable: false, configurable: false});
    defineProperty(PromiseProto, "constructor", {
      get() { markHandled(this); return NativePromise; },
      set(v) { hidden(this, "constructor", v); },
      enumerable: false, configurable: false,
    });
    hidden(PromiseProto, "then", function then(ok, bad) {
      markHandled(this);
      return watch(apply(nativeThen, this, [ok, bad]));
    });
    hidden(globalThis, "Promise", WatchedPromise);
  }

  // ---- Values as JSON -----------------------------------------------------
  //
  // One writer for arguments (strict: what JSON cannot say is an error) and
  // for values and console output (lenient: it becomes a readable note). It
  // counts on after the limit, to tell how large the value would have been.
//
  // It does not recurse: the engine's stack is small, and a program's values
  // may be deep. stack[1..depth] are the arrays and objects being written:
  // {of, count, at, keys, next, first}; keys is undefined for arrays.
  const maxDepth = 300, giveUp = 8 << 20, tooLarge = {};
  let text, size, limit, strict, depth, stack;
  let parts, partCount; // text so far in pieces: adding to one long string would copy it each time

  function put(s) {
    size += s.length;
    if (size > limit) {
      if (strict || size > giveUp) throw tooLarge;
      return;
    }
    text += s;
    if (text.length > 4096) { parts[partCount++] = text; text = ""; }
  }
  function written() {
    if (partCount === 0) return text;
    parts[partCount++] = text;
    for (let n = partCount; n > 1; n = (n + 1) >> 1) {
      for (let i = 0; i < n; i += 2) parts[i >> 1] = i + 1 < n ? parts[i] + parts[i + 1] : parts[i];
    }
    return parts[0];
  }
  function where() {
    let s = strict ? "args" : "the value"; // strict: the list [id, args] is written
    for (let d = strict ? 2 : 1; d <= depth; d++) {
      const f = stack[d], i = f.next - 1;
      s += f.keys === undefined ? "[" + i + "]" : "." + f.keys[i];
    }
    return s;
  }
  function odd(note, advice) {
    if (strict) throw new TypeErrorCtor(where() + " is " + note + advice);
    put(stringify("[" + note + "]"));
  }
  function open(of, count, at, ks) {
    put(ks === undefined ? "[" : "{");
    stack[++depth] = {of, count, at, keys: ks, next: 0, first: true};
  }
  function openObject(o, ks) {
    open(o, ks.length, (i) => o[ks[i]], ks);
  }
  // write writes a value, or begins to: what open has begun is written on by
  // writeAll.
  function write(v, key) {
    switch (typeof v) {
    case "string": put(stringify(v)); return;
    case "boolean": put(v ? "true" : "false"); return;
    case "bigint": put("" + v); return;
    case "number":
      if (v - v === 0) put("" + v);
      else if (strict) odd("" + v, ", which JSON cannot hold");
      else put("null");
      return;
    case "undefined": put("null"); return;
    case "symbol": odd(apply(StringCtor, undefined, [v]), ", a symbol"); return;
    case "function":
      odd(isToolName(v) ? "a tool that was not called" : "function " + plain(v.name, ""), "; call it, or leave it out");
      return;
    }
    if (v === null) { put("null"); return; }
    for (let d = 1; d <= depth; d++) {
      if (stack[d].of === v) { odd("circular", ": it contains itself"); return; }
    }
    if (depth >= maxDepth) { odd("nested deeper than " + maxDepth, ""); return; }
    if (isA(v, PromiseProto)) {
      odd("a promise: write await before the call, or await Promise.all([...]) for several", "");
      return;
    }
    const toJSON = v.toJSON;
    if (typeof toJSON === "function") {
      const j = apply(toJSON, v, ["" + key]);
      if (!isObject(j) || typeof j === "function") { write(j, key); return; }
      v = j;
    }
    if (isArray(v)) { open(v, v.length, (i) => v[i], undefined); return; }
    const proto = getPrototypeOf(v);
    if (proto === ObjectProto || proto === null) { openObject(v, keys(v)); return; }
    if (isA(v, protos.error)) { openError(v); return; }
    if (isA(v, protos.map)) { openMap(v); return; }
    if (isA(v, protos.set)) {
      const a = create(null);
      let n = 0;
      setForEach(v, (x) => { a[n++] = x; });
      open(v, n, (i) => a[i], undefined);
      return;
    }
    if (isA(v, protos.typed)) { open(v, typedLength(v), (i) => v[i], undefined); return; }
    if (isA(v, protos.buffer)) { odd("ArrayBuffer of " + bufferLength(v) + " bytes", "; pass an array of numbers or base64 text"); return; }
    if (isA(v, protos.view)) { odd("DataView", "; pass an array of numbers"); return; }
    if (isA(v, protos.regexp)) { put(stringify(regExpText(v))); return; }
    if (isA(v, protos.weakmap) || isA(v, protos.weakset)) { odd("WeakMap or WeakSet", ""); return; }
    if (isA(v, protos.number)) { write(valueOf.number(v), ""); return; }
    if (isA(v, protos.string)) { write(valueOf.string(v), ""); return; }
    if (isA(v, protos.boolean)) { write(valueOf.boolean(v), ""); return; }
    openObject(v, keys(v));
  }
  function openError(e) {
    const own = keys(e), ks = create(null);
    let n = 0;
    ks[n++] = "name";
    ks[n++] = "message";
    for (let i = 0; i < own.length; i++) {
      if (own[i] !== "name" && own[i] !== "message") ks[n++] = own[i];
    }
    open(e, n, (i) => i > 1 ? e[ks[i]] : plain(e[ks[i]], i === 0 ? "Error" : ""), ks);
  }
  function openMap(m) {
    const ks = create(null), vs = create(null);
    let n = 0, named = true;
    mapForEach(m, (v, k) => {
      if (typeof k !== "string" && typeof k !== "number") named = false;
      ks[n] = k;
      vs[n++] = v;
    });
    if (!named) { open(m, n, (i) => [ks[i], vs[i]], undefined); return; }
    for (let i = 0; i < n; i++) ks[i] = "" + ks[i];
    open(m, n, (i) => vs[i], ks);
  }
  function writeAll(v) {
    write(v, "");
    while (depth > 0) {
      const f = stack[depth], ks = f.keys;
      if (f.next >= f.count) {
        put(ks === undefined ? "]" : "}");
        stack[depth--] = undefined;
        continue;
      }
      const i = f.next++, k = ks === undefined ? i : ks[i];
      let x;
      try { x = f.at(i); } catch (e) {
        if (strict) throw e;
        x = "[getter threw " + shortError(e) + "]";
      }
      if (ks !== undefined && (x === undefined || typeof x === "function" && !strict && !isToolName(x))) continue;
      put((f.first ? "" : ",") + (ks === undefined ? "" : stringify(k) + ":"));
      f.first = false;
      try { write(x, k); } catch (e) {
        if (strict || e === tooLarge) throw e;
        put(stringify("[" + shortError(e) + "]"));
      }
    }
  }
  // toJSON returns {text, size, over}; text is whole unless over.
  function toJSON(v, max, isStrict) {
    text = ""; size = 0; limit = max; strict = isStrict; depth = 0; stack = create(null);
    parts = create(null); partCount = 0;
    let more = false;
    try { writeAll(v); } catch (e) {
      if (e !== tooLarge) throw e;
      more = true;
    }
    const out = {text: written(), size, more, over: size > max};
    text = ""; parts = undefined;
    if (!out.over && size * 3 > max) {
      out.size = utf8Length(out.text);
      out.over = out.size > max;
    }
    return out;
  }
  function utf8Length(s) {
    let n = s.length;
    for (let i = 0; i < s.length; i++) {
      const c = charCodeAt(s, i);
      if (c > 0x7f) n += c > 0x7ff ? (c >= 0xd800 && c < 0xe000 ? 1 : 2) : 1;
    }
    return n;
  }
  // shape says in one line what a value is made of.
  function shape(v, level) {
    try {
      if (v === null) return "null";
      if (typeof v === "string") return "string of " + v.length + " characters";
      if (typeof v !== "object") return typeof v;
      if (isArray(v)) return "array of " + v.length + (v.length > 0 && level > 0 ? " × " + shape(v[0], level - 1) : "");
      const ks = keys(v);
      if (level === 0) return "object with " + ks.length + " keys";
      let s = "{";
      for (let i = 0; i < ks.length && i < 12; i++) s += (i > 0 ? ", " : "") + slice(ks[i], 0, 40) + ": " + shape(v[ks[i]], level - 1);
      return s + (ks.length > 12 ? ", … " + (ks.length - 12) + " more keys" : "") + "}";
    } catch { return "unreadable"; }
  }

  // ---- Errors -------------------------------------------------------------
  function plain(v, otherwise) {
    if (typeof v === "string") return v;
    if (v === undefined || v === null) return otherwise;
    try { return "" + v; } catch { return otherwise; }
  }
  function shortError(e) {
    try {
      if (isObject(e) && isA(e, protos.error)) return slice(plain(e.name, "Error") + ": " + plain(e.message, ""), 0, 500);
      return slice(toJSONQuietly(e, 500), 0, 500);
    } catch { return "an error that cannot be read"; }
  }
  // toJSONQuietly is toJSON for use while another value is being written.
  function toJSONQuietly(v, max) {
    const saved = [text, size, limit, strict, depth, stack, parts, partCount];
    try {
      const j = toJSON(v, max, false);
      return j.over ? slice(j.text, 0, max) + "…" : j.text;
    } finally {
      text = saved[0]; size = saved[1]; limit = saved[2]; strict = saved[3]; depth = saved[4]; stack = saved[5]; parts = saved[6]; partCount = saved[7];
    }
  }
  function errorJSON(e) {
    const o = {Name: "", Message: "", Stack: "", Code: "", Thrown: false};
    try {
      if (isObject(e) && isA(e, protos.error)) {
        o.Name = slice(plain(e.name, "Error"), 0, 200);
        o.Message = slice(plain(e.message, ""), 0, 8000);
        o.Stack = slice(plain(e.stack, ""), 0, 8000);
        if (isA(e, ToolError.prototype)) o.Code = slice(plain(e.code, ""), 0, 100);
      } else {
        o.Thrown = true;
        o.Message = typeof e === "string" ? slice(e, 0, 8000) : toJSONQuietly(e, 2000);
      }
    } catch (x) {
      o.Thrown = true;
      o.Message = "a value that cannot be read was thrown";
    }
    return stringify(o);
  }
  class ToolError extends ErrorCtor {
    constructor(e, stack) {
      super(e.message);
      this.code = e.code;
      this.tool = e.tool;
      this.result = e.result;
      if (stack !== undefined) hidden(this, "stack", stack);
    }
  }
  hidden(ToolError.prototype, "name", "ToolError");
  hidden(globalThis, "ToolError", ToolError);

  // ---- Console ------------------------------------------------------------
  let maxLog = 0, maxLines = host.maxLines, logged = 0, lines = 0, dropped = 0;
  function format(v) {
    if (typeof v === "string") return v;
    if (isObject(v) && isA(v, protos.error)) return shortError(v);
    if (v === undefined) return "undefined";
    if (typeof v === "number" || typeof v === "bigint") return "" + v;
    return toJSONQuietly(v, 8000);
  }
  function log() {
    if (lines >= maxLines || logged > maxLog) { drop(); return; }
    let s = "";
    for (let i = 0; i < arguments.length; i++) s += (i > 0 ? " " : "") + slice(format(arguments[i]), 0, maxLog + 1);
    if (logged + s.length > maxLog) { logged = maxLog + 1; drop(); return; }
    lines++;
    logged += s.length;
    print("l" + stringify(s));
  }
  function drop() {
    if (dropped++ % 1000 === 0) print("n" + dropped);
  }
  {
    const console = create(null), levels = ["log", "info", "debug", "warn", "error", "table", "dir", "trace"];
    for (let i = 0; i < levels.length; i++) fixed(console, levels[i], log);
    hidden(globalThis, "console", freeze(console));
  }

  // ---- Calls --------------------------------------------------------------
  const pending = create(null);
  let lastID = 0, maxArgs = 0, finished = false;

  const isDigit = (k) => k !== "" && charCodeAt(k, 0) >= 48 && charCodeAt(k, 0) <= 57;
  function pendingProto(label) {
    return new ProxyCtor(create(PromiseProto), {
      get(target, k, self) {
        if (k === "toJSON") return () => "[a promise: write await " + label + "(...)]";
        if (k === toPrimitive) return () => "[a promise: write await " + label + "(...)]";
        if (k === iterator || k === asyncIterator) throw new TypeErrorCtor(label + "(...) is a promise: write await " + label + "(...) and loop over its result");
        if (typeof k === "symbol" || k in PromiseProto) return reflectGet(PromiseProto, k, self);
        throw new TypeErrorCtor(label + "(...) is a promise: write (await " + label + "(...))" + (isDigit(k) ? "[" + k + "]" : "." + k));
      },
    });
  }
  const kinds = {
    search: {label: "openclaw.tools.search", proto: pendingProto("openclaw.tools.search"), settle: hitList},
    describe: {label: "openclaw.tools.describe", proto: pendingProto("openclaw.tools.describe"), settle: (v) => v},
    call: {label: "openclaw.tools.call", proto: pendingProto("openclaw.tools.call"), settle: envelope},
  };
  function invoke(fn, prepare) {
    const kind = kinds[fn], stack = plain(new ErrorCtor().stack, "");
    let entry;
    const p = new WatchedPromise((resolve, reject) => {
      const args = prepare();
      const j = toJSON(args, maxArgs, true);
      if (j.over) throw new TypeErrorCtor("the arguments are larger than " + maxArgs + " bytes");
      entry = {kind, resolve, reject, stack, promise: undefined, id: typeof args[0] === "string" ? args[0] : ""};
      pending[++lastID] = entry;
      print("c" + lastID + " " + fn + " " + j.text);
    });
    if (entry !== undefined) entry.promise = p;
    setPrototypeOf(p, kind.proto);
    return p;
  }
  function kindOf(v) {
    if (v === null) return "null";
    if (isArray(v)) return "an array";
    if (isPromise(v)) return "a promise (write await before the call that made it)";
    return typeof v === "object" ? "an object" : typeof v === "undefined" ? "undefined" : "a " + typeof v;
  }
  function idOf(v, fn) {
    if (typeof v === "string" && trim(v) !== "") return v;
    if (isToolName(v)) return mapGet(toolNames, v);
    if (isObject(v) && !isArray(v) && !isPromise(v)) {
      const o = isObject(v.tool) ? v.tool : v;
      if (typeof o.id === "string") return o.id;
      if (typeof o.toolId === "string") return o.toolId;
      if (typeof o.tool === "string") return o.tool;
      if (typeof o.name === "string") return o.name;
    }
    throw new TypeErrorCtor("openclaw.tools." + fn + " needs a tool id, for example hits[0].id, but got " + kindOf(v) +
      (v === undefined ? "; did the search find nothing?" : ""));
  }
  function argsOf(v, id) {
    if (v === undefined || v === null) return {};
    if (typeof v === "string") {
      let o;
      try { o = parse(v); } catch { o = undefined; }
      if (isObject(o) && !isArray(o)) return o;
    } else if (isObject(v) && typeof v === "object" && !isArray(v) && !isPromise(v)) {
      return v;
    }
    throw new TypeErrorCtor("the arguments must be one object: openclaw.tools.call(" + stringify(id) + ", {name: value}), but got " + kindOf(v));
  }
  function search(query, options) {
    return invoke("search", () => {
      if (isObject(query) && !isArray(query) && !isPromise(query) && typeof query.query === "string") {
        options = options === undefined && query.limit !== undefined ? {limit: query.limit} : options;
        query = query.query;
      }
      if (typeof options === "number") options = {limit: options};
      if (typeof query !== "string" && !isObject(query)) throw new TypeErrorCtor("openclaw.tools.search needs a query text, but got " + kindOf(query));
      return options === undefined ? [query] : [query, options];
    });
  }
  function describe(id, options) {
    return invoke("describe", () => options === undefined ? [idOf(id, "describe")] : [idOf(id, "describe"), options]);
  }
  function callTool(id, args, more) {
    return invoke("call", () => {
      if (typeof id === "string" && typeof args === "string" && isObject(more)) return ["mcp:" + id + ":" + args, argsOf(more, id)];
      if (args === undefined && isObject(id) && typeof id === "object" && !isPromise(id)) {
        args = hasOwn(id, "args") ? id.args : hasOwn(id, "arguments") ? id.arguments : undefined;
      }
      id = idOf(id, "call");
      return [id, argsOf(args, id)];
    });
  }

  // A tool's name used as a function: tools.list_files({…}), tools.files.list({…}).
  const toolNames = new Map();
  function isToolName(v) { return typeof v === "function" && mapGet(toolNames, v) !== undefined; }
  function toolName(path) {
    const p = new ProxyCtor(function () {}, {
      apply(target, self, argv) {
        const id = path, n = argv.length, first = argv[0];
        if (n > 1) return invoke("call", () => { throw new TypeErrorCtor("pass one object of arguments: openclaw.tools.call(" + stringify(id) + ", {name: value})"); });
        return callTool(id, first);
      },
      get(target, k) {
        if (typeof k === "symbol" || k === "then" || k === "toJSON" || k === "prototype") return undefined;
        if (k === "name") return path;
        return toolName(startsWith(path, "mcp:") ? path + "." + k : "mcp:" + path + ":" + k);
      },
    });
    mapSet(toolNames, p, path);
    return p;
  }
  const named = (known) => new ProxyCtor(create(null), {
    get(target, k) {
      if (typeof k === "symbol" || k === "then" || k === "toJSON") return undefined;
      if (known !== null && hasOwn(known, k)) return known[k];
      if (k in ObjectProto) return ObjectProto[k];
      return toolName(k);
    },
    has() { return false; },
  });
  {
    const tools = create(named(null)), openclaw = create(named(tools));
    fixed(tools, "search", search);
    fixed(tools, "describe", describe);
    fixed(tools, "call", callTool);
    fixed(openclaw, "tools", freeze(tools));
    freeze(openclaw);
    hidden(globalThis, "openclaw", openclaw);
    hidden(globalThis, "tools", tools);

    const instead = (name, advice) => hidden(globalThis, name, () => { throw new ErrorCtor(name + " is not available here: " + advice); });
    const useTools = "find a tool with openclaw.tools.search(...) and run it with openclaw.tools.call(id, args)";
    instead("fetch", useTools);
    instead("setTimeout", "there are no timers, await openclaw.tools.call(id, args) waits as long as the tool takes");
    instead("setInterval", "there are no timers, await openclaw.tools.call(id, args) waits as long as the tool takes");
    hidden(globalThis, "require", (what) => {
      if (typeof what === "string" && (startsWith(what, "openclaw") || startsWith(what, "tools"))) return openclaw;
      throw new ErrorCtor("require is not available here: " + useTools);
    });
    // import(…) in a program is written as this name by the host.
    hidden(globalThis, host.importName, () => WatchedPromise.reject(new ErrorCtor("import is not available here: " + useTools)));
  }

  // A hit list answers to the names that models expect around it.
  function hitList(v) {
    if (isArray(v)) {
      const same = ["results", "hits", "tools"];
      for (let i = 0; i < same.length; i++) hidden(v, same[i], v);
    }
    return v;
  }
  // An envelope {tool, result} passes on what is not its own: r.content is
  // r.result.content, r.items and r.result.items are r.result.details.items.
  function envelope(v, alias) {
    const r = v.result;
    if (!isObject(r)) return v;
    let details;
    switch (alias) {
    case "s": details = r.structuredContent; break;
    case "d": details = v.details; delete v.details; break;
    case "t": details = joinTexts(r.content); break;
    }
    defineProperty(r, "details", {value: details, writable: true, enumerable: true, configurable: true});
    const inDetails = (k) => typeof details === "object" && details !== null && (isArray(details) ? k in details : hasOwn(details, k));
    const find = (k, inResult) => {
      if (k === "then" || k === "toJSON") return undefined;
      if (inResult && typeof k === "string" && hasOwn(r, k)) return r[k];
      return inDetails(k) ? details[k] : ObjectProto[k];
    };
    const has = (target, k) => k in ObjectProto || inDetails(k);
    setPrototypeOf(r, new ProxyCtor(create(ObjectProto), {has, get: (target, k) => find(k, false)}));
    setPrototypeOf(v, new ProxyCtor(create(ObjectProto), {has, get: (target, k) => find(k, true)}));
    return v;
  }
  function joinTexts(content) {
    let s = "", n = 0;
    if (isArray(content)) {
      for (let i = 0; i < content.length; i++) {
        const b = content[i];
        if (isObject(b) && b.type === "text" && typeof b.text === "string") s += (n++ > 0 ? "\n" : "") + b.text;
      }
    }
    return s;
  }

  function seedRandom(a, b, c, d) {
    // sfc32: small, and never the same in two programs
    const next = () => {
      const t = (((a + b) | 0) + d) | 0;
      d = (d + 1) | 0;
      a = b ^ (b >>> 9);
      b = (c + (c << 3)) | 0;
      c = (c << 21) | (c >>> 11);
      c = (c + t) | 0;
      return t >>> 0;
    };
    for (let i = 0; i < 12; i++) next();
    hidden(Math, "random", () => (next() * 2097152 + (next() >>> 11)) / 9007199254740992);
  }

  // ---- Called by the host -------------------------------------------------
  async function settled(v) {
    // An array or object of promises that the body forgot to await.
    if (isArray(v)) {
      let found = false;
      for (let i = 0; i < v.length && i < 1000 && !found; i++) found = isObject(v[i]) && isPromise(v[i]);
      if (!found) return v;
      const out = create(null);
      for (let i = 0; i < v.length; i++) out[i] = await v[i];
      const a = [];
      for (let i = 0; i < v.length; i++) defineProperty(a, i, {value: out[i], writable: true, enumerable: true, configurable: true});
      return a;
    }
    if (isObject(v) && typeof v === "object" && getPrototypeOf(v) === ObjectProto) {
      const ks = keys(v);
      let found = false;
      for (let i = 0; i < ks.length && i < 1000 && !found; i++) {
        const d = descriptorOf(v, ks[i]);
        found = d !== undefined && hasOwn(d, "value") && isPromise(d.value);
      }
      if (!found) return v;
      const o = {};
      for (let i = 0; i < ks.length; i++) defineProperty(o, ks[i], {value: await v[ks[i]], writable: true, enumerable: true, configurable: true});
      return o;
    }
    return v;
  }
  async function runBody(body, implicit, maxOutput) {
    try {
      let v = await body();
      // A program that is one function, not called.
      if (implicit && typeof v === "function" && !isToolName(v) && !startsWith(functionText(v), "class")) v = await v();
      v = await settled(v);
      const j = toJSON(v, maxOutput, false);
      if (j.over) print('v{"OK":true,"Over":' + stringify({Bytes: j.size, More: j.more, Shape: slice(shape(v, 2), 0, 600)}) + "}");
      else print('v{"OK":true,"Value":' + j.text + "}");
    } catch (e) {
      print('v{"OK":false,"Error":' + errorJSON(e) + "}");
    }
    for (let id = 1; id <= lastID; id++) {
      const c = pending[id];
      if (c !== undefined && !weakHas(handled, c.promise)) unwaited += (unwaited === "" ? "" : ",") + stringify(c.kind.label + "(" + slice(stringify(c.id), 0, 200) + ")");
    }
  }
  let unwaited = "";
  return {
    start(body, options) {
      const {implicit, maxOutput, maxArgs: max, seed} = parse(options);
      maxLog = maxOutput;
      maxArgs = max;
      seedRandom(seed[0] | 0, seed[1] | 0, seed[2] | 0, seed[3] | 0);
      runBody(body, implicit, maxOutput);
    },
    settle(answer) {
      const end = indexOf(answer, "\n"), head = parse(slice(answer, 0, end)), json = slice(answer, end + 1);
      const id = head[0], ok = head[1], alias = head[2], big = head[3];
      const c = pending[id];
      if (c === undefined) return;
      delete pending[id];
      try {
        const v = big === "" ? parse(json) : parse(json, (k, x) => typeof x === "string" && startsWith(x, big) ? BigIntCtor(slice(x, big.length)) : x);
        if (ok) c.resolve(c.kind.settle(v, alias));
        else c.reject(new ToolError(v, c.stack));
      } catch (e) {
        c.reject(e);
      }
    },
    finish() {
      let errors = "", n = 0;
      mapForEach(rejected, (e) => { if (n++ < 10) errors += (errors === "" ? "" : ",") + errorJSON(e); });
      print('u{"Errors":[' + errors + '],"Count":' + n + ',"Unwaited":[' + unwaited + '],"Dropped":' + dropped + "}");
    },
  };
})
