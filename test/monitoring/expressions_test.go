// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/prometheus/model/labels"
	promparser "github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const folder = "../../config/monitoring"

// A rule is an alerting rule.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func readAlerts(t *testing.T) []rule {
	t.Helper()
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join(folder, "alerts.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	var file struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	g.Expect(yaml.UnmarshalStrict(content, &file)).To(Succeed())
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	g.Expect(all).NotTo(BeEmpty())
	return all
}

// A dashboard contains the fields of a Grafana dashboard that these tests use.
type dashboard struct {
	UID           string `json:"uid"`
	SchemaVersion int    `json:"schemaVersion"`
	Templating    struct {
		List []struct {
			Name, Type, Definition string
			Query                  any
		} `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type panel struct {
	ID         int                      `json:"id"`
	Type       string                   `json:"type"`
	Title      string                   `json:"title"`
	Datasource *datasource              `json:"datasource"`
	GridPos    struct{ H, W, X, Y int } `json:"gridPos"`
	Targets    []struct {
		Expr       string     `json:"expr"`
		RefID      string     `json:"refId"`
		Datasource datasource `json:"datasource"`
	} `json:"targets"`
}

type datasource struct{ Type, UID string }

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join(folder, "dashboard.json"))
	g.Expect(err).NotTo(HaveOccurred())
	var d dashboard
	g.Expect(json.Unmarshal(content, &d)).To(Succeed())
	return d
}

// grafana replaces variables in expressions, like Grafana.
var grafana = strings.NewReplacer("$__rate_interval", "5m", "$site", "vcd.example.com", "$job", "capvcd")

var labelValues = regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)

// expressions returns the expressions of all alerts and panels, by location.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	g := NewWithT(t)
	all := map[string]string{}
	for _, r := range readAlerts(t) {
		all["alert "+r.Alert] = r.Expr
	}
	d := readDashboard(t)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all["panel "+p.Title+" "+target.RefID] = grafana.Replace(target.Expr)
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			found := labelValues.FindStringSubmatch(v.Definition)
			g.Expect(found).NotTo(BeNil(), v.Definition)
			all["variable "+v.Name] = "count by (" + found[2] + ") (" + found[1] + ")"
		}
	}
	return all
}

// TestExpressionsUseExistingMetrics parses each expression and checks that all its metrics and labels are served.
func TestExpressionsUseExistingMetrics(t *testing.T) {
	served := gather(t)
	words := words(t)
	for where, expr := range expressions(t) {
		t.Run(where, func(t *testing.T) {
			g := NewWithT(t)
			parsed, err := promparser.NewParser(promparser.Options{}).ParseExpr(expr)
			g.Expect(err).NotTo(HaveOccurred(), expr)

			var names []string
			promparser.Inspect(parsed, func(node promparser.Node, _ []promparser.Node) error {
				if selector, ok := node.(*promparser.VectorSelector); ok {
					names = append(names, selector.Name)
					g.Expect(served).To(HaveKey(selector.Name))
					for _, m := range selector.LabelMatchers {
						checkMatcher(g, served[selector.Name], words, m)
					}
				}
				return nil
			})
			g.Expect(names).NotTo(BeEmpty())
			for _, label := range grouping(parsed) {
				for _, name := range names {
					g.Expect(served[name]).To(HaveKey(label), "grouped by, but not a label of %s", name)
				}
			}
		})
	}
}

// checkMatcher checks that the label of a matcher exists and can have the value.
func checkMatcher(g *WithT, served map[string]map[string]bool, words map[string]bool, m *labels.Matcher) {
	if m.Name == labels.MetricName {
		return
	}
	g.ExpectWithOffset(1, served).To(HaveKey(m.Name))
	for value := range strings.SplitSeq(m.Value, "|") {
		if literal := strings.TrimSuffix(value, ".*"); literal != value {
			continue // any value with this prefix
		}
		switch m.Name {
		case "condition", "reason":
			g.ExpectWithOffset(1, words).To(HaveKey(value), "unknown condition or reason")
		case "state":
			g.ExpectWithOffset(1, served["state"]).To(HaveKey(value),
				"all states are served, including those without a Service")
		case "kind", "controller", "by":
			g.ExpectWithOffset(1, slices.Concat(kinds, holders, []string{"vcdmachine"})).To(ContainElement(value))
		case "status", "outcome", "result":
			g.ExpectWithOffset(1, outcomes).To(ContainElement(value))
		}
	}
}

// Possible values of labels, as in the reference of metrics.
var (
	kinds    = []string{"VCDCluster", "VCDMachine", "VCDMachineTemplate", "VCDIdentity", "VCDClusterIdentity"}
	holders  = []string{"rate_limit", "in_flight", "vcd", "outage"}
	outcomes = []string{
		"True", "False", "Unknown", "complete", "waiting", "problem", "unknown", "error", "success", "failure",
		"rejected",
		"ok", "not_found", "forbidden", "busy", "throttled", "unauthorized", "invalid", "quota", "conflict",
		"unavailable", "untrusted", "cancelled", "other",
	}
)

// grouping returns all labels by which an expression groups or matches, at any depth.
func grouping(expr promparser.Expr) []string {
	var found []string
	promparser.Inspect(expr, func(node promparser.Node, _ []promparser.Node) error {
		switch n := node.(type) {
		case *promparser.AggregateExpr:
			found = append(found, n.Grouping...)
		case *promparser.BinaryExpr:
			if n.VectorMatching != nil {
				found = append(found, n.VectorMatching.MatchingLabels...)
			}
		}
		return nil
	})
	return found
}

// words returns the values of all conditions and reasons in the API.
func words(t *testing.T) map[string]bool {
	t.Helper()
	g := NewWithT(t)
	found := map[string]bool{"Ready": true, "Paused": true}
	files, err := filepath.Glob("../../api/v1beta4/*.go")
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		g.Expect(err).NotTo(HaveOccurred())
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !strings.HasSuffix(spec.Names[0].Name, "Reason") &&
				!strings.HasSuffix(spec.Names[0].Name, "Condition") {
				return true
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
				value, err := strconv.Unquote(literal.Value)
				g.Expect(err).NotTo(HaveOccurred())
				found[value] = true
			}
			return true
		})
	}
	return found
}

// TestEveryMetricIsOnTheDashboard checks that the panels use each metric of this provider.
func TestEveryMetricIsOnTheDashboard(t *testing.T) {
	d := readDashboard(t)
	var panels strings.Builder
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			panels.WriteString(target.Expr + "\n")
		}
	}
	for name := range gather(t) {
		if !strings.HasPrefix(name, "capvcd_") {
			continue
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, suffix)
		}
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(panels.String()).To(ContainSubstring(name)) })
	}
}

func TestDashboardIsValid(t *testing.T) {
	g := NewWithT(t)
	d := readDashboard(t)
	ids := map[int]string{}
	taken := map[[2]int]string{}

	g.Expect(d.UID).NotTo(BeEmpty())
	g.Expect(d.SchemaVersion).To(BeNumerically(">=", 39))
	g.Expect(d.Templating.List[0].Type).To(Equal("datasource"), "users select the data source")
	for _, p := range d.Panels {
		g.Expect(ids).NotTo(HaveKey(p.ID), p.Title)
		ids[p.ID] = p.Title
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				g.Expect(taken).NotTo(HaveKey([2]int{x, y}), "%s overlaps another panel", p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
		g.Expect(p.GridPos.X + p.GridPos.W).To(BeNumerically("<=", 24))
		if p.Type == "row" {
			continue
		}
		g.Expect(p.Targets).NotTo(BeEmpty(), p.Title)
		g.Expect(*p.Datasource).To(Equal(datasource{"prometheus", "${datasource}"}), p.Title)
		for _, target := range p.Targets {
			g.Expect(target.Datasource).To(Equal(*p.Datasource), p.Title)
		}
	}
}

func TestEveryAlertHasARunbook(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("../../docs/operate/runbooks.md")
	g.Expect(err).NotTo(HaveOccurred())
	var headings []string
	for line := range strings.Lines(string(content)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			headings = append(headings, name)
		}
	}
	var names []string
	for _, r := range readAlerts(t) {
		names = append(names, r.Alert)
		g.Expect(r.Annotations).To(HaveKeyWithValue("runbook_url",
			HaveSuffix("/docs/operate/runbooks.md#"+strings.ToLower(r.Alert))))
		g.Expect(r.Annotations).To(And(HaveKey("summary"), HaveKey("description")), r.Alert)
		g.Expect(r.Labels["severity"]).To(BeElementOf("critical", "warning", "info"), r.Alert)
		g.Expect(r.For).NotTo(BeEmpty(), "%s must not fire immediately", r.Alert)
	}

	g.Expect(headings).To(ConsistOf(names), "each alert needs exactly one section")
}
