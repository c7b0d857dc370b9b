"use strict";
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const config = { responsive: true, displaylogo: false, scrollZoom: false };

  const themed = (layout) => {
    const style = getComputedStyle(document.body);
    const label = { bgcolor: style.getPropertyValue("--tip").trim(), font: { color: style.color } };
    return {
      ...layout,
      font: { ...layout.font, color: style.color, family: style.fontFamily },
      hoverlabel: { ...layout.hoverlabel, ...label },
    };
  };

  const draw = (frame) => {
    const { data, layout } = JSON.parse(frame.querySelector("script").textContent);
    let plot = frame.querySelector(".plot");
    if (plot === null) {
      frame.querySelector(".undrawn").remove();
      plot = frame.appendChild(document.createElement("div"));
      plot.className = "plot";
    }
    Plotly.react(plot, data, themed(layout), config);
  };

  const drawn = new Set();
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting && !drawn.has(target)) {
        drawn.add(target);
        draw(target);
      }
    }
  }, { rootMargin: "600px" });
  document.querySelectorAll(".timeline").forEach((frame) => seen.observe(frame));

  dark.addEventListener("change", () => drawn.forEach(draw));
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((details) => { details.open = true; });
  });
})();
