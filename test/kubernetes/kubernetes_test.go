// SPDX-License-Identifier: Apache-2.0

// Package kubernetes runs the end-to-end tests of Kubernetes that need no cloud provider, storage or special hardware.
// `make conformance-kubernetes` builds it and runs the selected specs.
package kubernetes

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"k8s.io/kubernetes/test/conformance/testdata"
	"k8s.io/kubernetes/test/e2e"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	"k8s.io/kubernetes/test/e2e/framework/testfiles"
	manifests "k8s.io/kubernetes/test/e2e/testing-manifests"
	"k8s.io/kubernetes/test/fixtures"

	_ "k8s.io/kubernetes/test/e2e/apimachinery"
	_ "k8s.io/kubernetes/test/e2e/apps"
	_ "k8s.io/kubernetes/test/e2e/auth"
	_ "k8s.io/kubernetes/test/e2e/common"
	_ "k8s.io/kubernetes/test/e2e/feature"
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/metrics/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"
	_ "k8s.io/kubernetes/test/e2e/network"
	_ "k8s.io/kubernetes/test/e2e/node"
	_ "k8s.io/kubernetes/test/utils/format"
)

var list = flag.String("list", "", "file with the full texts of the specs to run, one per line")

func TestMain(m *testing.M) {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	testfiles.AddFileSource(manifests.GetE2ETestingManifestsFS())
	testfiles.AddFileSource(fixtures.GetTestFixturesFS())
	testfiles.AddFileSource(testdata.GetConformanceTestdataFS())
	if *list == "" {
		fmt.Println("make conformance-kubernetes runs these tests in a separate cluster")
		os.Exit(0) // never run against the current cluster of KUBECONFIG
	}
	specs, err := readList(*list)
	if err == nil {
		err = flag.Set("ginkgo.focus", " ("+strings.Join(quoted(specs), "|")+")$")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	listed = specs
	framework.AfterReadingAllFlags(&framework.TestContext)
	os.Exit(m.Run())
}

// readList returns the specs in a file, one per line. Lines that begin with # are comments. An empty list is an error.
func readList(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the list of specs: %w", err)
	}
	var specs []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			specs = append(specs, line)
		}
	}
	if len(specs) == 0 {
		return nil, fmt.Errorf("no specs in %s", path)
	}
	return specs, nil
}

func quoted(specs []string) []string {
	var out []string
	for _, s := range specs {
		out = append(out, regexp.QuoteMeta(s))
	}
	return out
}

// listed are the specs of the list.
var listed []string

// The run fails if a spec of the list does not pass, or does not exist.
var _ = ginkgo.ReportAfterSuite("All specs of the list passed", func(report ginkgo.Report) {
	passed := map[string]bool{}
	for _, spec := range report.SpecReports {
		passed[spec.FullText()] = spec.State.Is(types.SpecStatePassed)
	}
	var missing []string
	for _, spec := range listed {
		if !passed[spec] {
			missing = append(missing, spec)
		}
	}
	if len(missing) > 0 && !report.SuiteConfig.DryRun {
		ginkgo.Fail("these specs of the list did not pass:\n" + strings.Join(missing, "\n"))
	}
})

func TestE2E(t *testing.T) { e2e.RunE2ETests(t) }
