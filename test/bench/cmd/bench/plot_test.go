// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/memory"
)

func measured(clusters int, peak float64) result {
	machines := 10 * clusters
	return result{
		CPUs:     2,
		Load:     "0.10",
		Clusters: clusters,
		Machines: machines,
		Manager:  memory.Use{Peak: peak},
		Creation: spent{
			Seconds: float64(machines) / 2,
			CPU:     map[string]float64{managerProgram: float64(machines) / 10},
			Calls:   map[string]int{"GET /api/query": 7 * machines},
		},
	}
}

func TestTheCurveShowsAllResults(t *testing.T) {
	g := NewWithT(t)
	results := []result{measured(10, 60), measured(100, 120)}
	file := filepath.Join(t.TempDir(), "curve.svg")
	var out strings.Builder
	g.Expect(reportCurve(results, file, &out)).To(Succeed())
	g.Expect(out.String()).To(MatchRegexp(`clusters +10 +100\n`))
	g.Expect(out.String()).To(MatchRegexp(`Peak memory of the manager +60 MiB +120 MiB\n`))
	g.Expect(out.String()).To(MatchRegexp(`Calls to VCD during creation +700 +7000 ?\n +per machine +7 +7\n`))
	g.Expect(out.String()).NotTo(ContainSubstring("at rest"), "the rest was not measured")

	svg, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Count(string(svg), "<circle")).To(Equal(4 * len(results)))
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		if _, err = d.Token(); err != nil {
			break
		}
	}
	g.Expect(errors.Is(err, io.EOF)).To(BeTrue(), "%v", err)
}

func TestTheCurveShowsTheRestIfAllRunsMeasuredIt(t *testing.T) {
	g := NewWithT(t)
	rested := measured(10, 60)
	rested.Rest = spent{Seconds: 600, CPU: map[string]float64{managerProgram: 6}, Calls: map[string]int{"GET /api/query": 5}}
	g.Expect(figures([]result{rested})).To(HaveLen(6))
	g.Expect(rested.restCallsPerHour()).To(Equal(30.0))
	g.Expect(rested.restCPU()).To(Equal(1.0))
	g.Expect(figures([]result{rested, measured(100, 120)})).To(HaveLen(4))
}

func TestAxesEndAtRoundNumbers(t *testing.T) {
	g := NewWithT(t)
	for value, end := range map[float64]float64{0: 1, 1: 1, 1.2: 2, 36.5: 50, 81: 100, 10000: 10000, 0.03: 0.05} {
		g.Expect(roundUp(value)).To(BeNumerically("~", end, 1e-9), "%g", value)
	}
}

func TestNumbersOfClusters(t *testing.T) {
	g := NewWithT(t)
	g.Expect(numbers("10, 100")).To(Equal([]int{10, 100}))
	g.Expect(numbers("")).To(BeEmpty())
	_, err := numbers("10,many")
	g.Expect(err).To(MatchError(`"many" is not a number`))
	_, err = parse([]string{"-curve", "10,9000"}, io.Discard)
	g.Expect(err).To(MatchError("9000 clusters: set a number from 1 to 1500"))
}
