// SPDX-License-Identifier: Apache-2.0

// Command helm renders a chart from standard input as "helm template" does, by Helm's own libraries, with the values of
// its argument. It is a module of its own: Helm's requirements would have the whole of test/ compiled twice.
package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

func main() {
	if err := render(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "helm:", err)
		os.Exit(1)
	}
}

func render(args []string, archive io.Reader, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: helm VALUES < CHART.tgz")
	}
	chart, err := loader.LoadArchive(archive)
	if err != nil {
		return err
	}
	if err := chart.Validate(); err != nil {
		return err
	}
	given, err := loader.LoadValues(strings.NewReader(args[0]))
	if err != nil {
		return err
	}
	release := common.ReleaseOptions{Name: "ccm", Namespace: "kube-system", IsInstall: true}
	all, err := util.ToRenderValues(chart, given, release, common.DefaultCapabilities)
	if err != nil {
		return err
	}
	texts, err := engine.Render(chart, all)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if _, err := fmt.Fprintf(out, "---\n%s\n", texts[name]); err != nil {
			return err
		}
	}
	return nil
}
