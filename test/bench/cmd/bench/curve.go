// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

// A figure is a measurement that the curve shows for each number of machines.
type figure struct {
	title string
	unit  string
	of    func(r result) float64
}

// figures returns the figures of the curve. Those at rest are omitted if the rest was not measured.
func figures(results []result) []figure {
	all := []figure{
		{"Time until all machines are up", "s", func(r result) float64 { return r.Creation.Seconds }},
		{"Processor time of the manager", "s", func(r result) float64 { return r.Creation.CPU[managerProgram] }},
		{"Peak memory of the manager", "MiB", func(r result) float64 { return r.Manager.Peak }},
		{"Calls to VCD during creation", "", func(r result) float64 { return float64(r.Creation.calls()) }},
	}
	for _, r := range results {
		if r.Rest.Seconds == 0 {
			return all
		}
	}
	return append(all,
		figure{"Calls to VCD per hour at rest", "", result.restCallsPerHour},
		figure{"Processor of the manager at rest", "%", result.restCPU},
	)
}

// reportCurve prints the results side by side, and writes the plot if it has a file name.
func reportCurve(results []result, plot string, out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name string, value func(r result) string) {
		_, _ = fmt.Fprint(w, name)
		for _, r := range results {
			_, _ = fmt.Fprint(w, "\t", value(r))
		}
		_, _ = fmt.Fprintln(w)
	}
	row("\nclusters", func(r result) string { return fmt.Sprint(r.Clusters) })
	row("machines", func(r result) string { return fmt.Sprint(r.Machines) })
	row("load", func(r result) string { return r.Load })
	for _, f := range figures(results) {
		row(f.title, func(r result) string { return fmt.Sprintf("%.4g %s", f.of(r), f.unit) })
		row("  per machine", func(r result) string { return fmt.Sprintf("%.3g", r.perMachine(f.of(r))) })
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if plot == "" {
		return nil
	}
	return os.WriteFile(plot, []byte(plotOf(results)), 0o644) //nolint:gosec // a public picture
}

// writeResults writes results as JSON, also those before a failed run.
func writeResults(file string, results []result) error {
	if file == "" || len(results) == 0 {
		return nil
	}
	text, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // public figures
}
