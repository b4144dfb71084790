document.querySelectorAll("table").forEach((table) => table.querySelector("[data-sort]") && makeSortable(table));
decode("index")
  .then((index) => {
    const data = readIndex(index);
    problemTable(data, browser(data));
    document.documentElement.dataset.ready = "true";
    performance.mark("ready");
  })
  .catch((error) => {
    document.getElementById("sample-status").textContent = `The samples cannot be shown: ${error.message}`;
    throw error;
  });
