// Search from the disk: browsers refuse workers there, so that the worker's script runs in a hidden frame instead.
if (location.protocol === "file:") window.Worker = class extends EventTarget {
  constructor(url) {
    super();
    this.waiting = [];
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    this.inside = frame.contentWindow;
    this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
    const script = this.inside.document.createElement("script");
    script.onload = () => { this.ready = true; this.waiting.forEach(data => this.deliver(data)); };
    script.src = new URL(url, document.baseURI);
    this.inside.document.body.append(script);
  }
  deliver(data) { this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })); }
  postMessage(data) { this.ready ? this.deliver(data) : this.waiting.push(data); }
};
