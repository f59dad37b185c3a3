// SPDX-License-Identifier: Apache-2.0

// Command helm renders a chart from standard input as "helm template" does, by Helm's own libraries, for a release in
// namespace kube-system. Values of later arguments win. It is a module of its own: Helm's requirements would have the
// whole of test/ compiled twice.
package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
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
	if len(args) == 0 {
		return errors.New("usage: helm RELEASE [VALUES...] < CHART.tgz")
	}
	chart, err := loader.LoadArchive(archive)
	if err != nil {
		return err
	}
	if err := chart.Validate(); err != nil {
		return err
	}
	given, err := merge(args[1:])
	if err != nil {
		return err
	}
	release := common.ReleaseOptions{Name: args[0], Namespace: "kube-system", IsInstall: true}
	all, err := util.ToRenderValues(chart, given, release, common.DefaultCapabilities)
	if err != nil {
		return err
	}
	texts, err := engine.Render(chart, all)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		text := strings.TrimSpace(texts[name])
		if text == "" || path.Base(name) == "NOTES.txt" {
			continue
		}
		if _, err := fmt.Fprintf(out, "---\n%s\n", strings.TrimPrefix(text, "---\n")); err != nil {
			return err
		}
	}
	return nil
}

func merge(values []string) (map[string]any, error) {
	all := map[string]any{}
	for _, text := range values {
		more, err := loader.LoadValues(strings.NewReader(text))
		if err != nil {
			return nil, err
		}
		all = loader.MergeMaps(all, more)
	}
	return all, nil
}
