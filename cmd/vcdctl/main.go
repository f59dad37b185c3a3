// SPDX-License-Identifier: Apache-2.0

// Command vcdctl shows users what clusters require and own in VMware Cloud Director: it runs preflight checks, lists
// the objects of a cluster, and finds orphaned resources. Installed as kubectl-vcd in the path, it is also "kubectl
// vcd".
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/version"
)

// Exit codes, for scripts.
const (
	exitOK       = 0
	exitError    = 1 // the program failed
	exitFindings = 2 // the program succeeded, and found problems, leaks or refusals
)

// errFindings ends the program with exitFindings. The findings are already printed.
var errFindings = errors.New("problems were found")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // A second Ctrl-C ends the program at once.
	ctrl.SetLogger(logr.Discard())
	p := &program{
		name:   programName(os.Args[0]),
		getenv: os.Getenv,
		in:     os.Stdin,
		out:    os.Stdout,
		errors: os.Stderr,
	}
	p.interactive = func() bool { return term.IsTerminal(int(os.Stdin.Fd())) }
	p.connect = p.connectContext
	p.podLog = p.readPodLog
	os.Exit(p.run(ctx, os.Args[1:])) //nolint:gocritic // the process ends with its signal handlers
}

// programName returns the name under which the user called the program: kubectl runs kubectl-vcd as a plug-in.
func programName(path string) string {
	if name := strings.TrimSuffix(filepath.Base(path), ".exe"); strings.HasPrefix(name, "kubectl-") {
		return "kubectl vcd"
	}
	return "vcdctl"
}

// withRemedy adds how to trust the certificate of a site to an error about it.
func withRemedy(err error) error {
	if !errors.Is(err, vcd.ErrTLS) {
		return err
	}
	return fmt.Errorf("%w: add its certificate authority to spec.tls.caBundle of the identity, or set a PEM file in --ca-file, in VCD_CA_FILE or in caFile of --config", err)
}

// A program is one run of vcdctl.
type program struct {
	name   string
	getenv func(string) string
	in     io.Reader
	out    io.Writer
	errors io.Writer
	// interactive reports whether a user can answer questions.
	interactive func() bool
	// connect returns a client for the management cluster of a context, and the namespace of the context.
	connect func(kubeContext string) (client.Client, string, error)
	// podLog returns the log of a pod of the management cluster.
	podLog func(ctx context.Context, pod client.ObjectKey, options corev1.PodLogOptions) ([]byte, error)

	access access
	output string // table or json
}

// run runs the program and returns its exit code.
func (p *program) run(ctx context.Context, args []string) int {
	command := p.command() //nolint:contextcheck // Cobra passes the context to the verbs.
	command.SetArgs(args)
	err := command.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errFindings):
		return exitFindings
	}
	fmt.Fprintln(p.errors, "Error:", withRemedy(err))
	return exitError
}

// command returns the root command with all subcommands.
func (p *program) command() *cobra.Command {
	root := &cobra.Command{
		Use:   p.name,
		Short: "Check and inspect clusters on VMware Cloud Director",
		Long: `Runs preflight checks for clusters on VMware Cloud Director (VCD), lists the objects of a cluster and orphaned
resources, proposes failure domains, compares a site with the simulator, and exports a site for the simulator. Only
purge --yes and verify-site change objects in VCD; verify-site --read-only does not.

It uses the first of these credentials that is set:
  --identity, --cluster-identity  an identity in the management cluster of --kubeconfig and --context
  --config                        a YAML file with site, org, username and password or apiToken, caFile,
                                  insecureSkipVerify
  the environment                 VCD_SITE, VCD_ORGANIZATION, VCD_USERNAME and VCD_PASSWORD or VCD_API_TOKEN,
                                  VCD_CA_FILE, VCD_INSECURE_SKIP_VERIFY
  -f                              the identity in a manifest, or the one that it refers to

Exit codes: 0 success, 1 error, 2 problems found.`,
		Version:       version.Long(),
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if p.output != "table" && p.output != "json" {
				return fmt.Errorf("--output is %q: it must be table or json", p.output)
			}
			return nil
		},
	}
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.errors)
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.PersistentFlags().StringVarP(&p.output, "output", "o", "table", "Output format: table or json.")
	p.access.addFlags(root.PersistentFlags())
	root.AddCommand(p.doctorCommand(), p.leaksCommand(), p.purgeCommand(), p.inventoryCommand(),
		p.bundleCommand(), p.zonesCommand(), p.adoptCommand(), p.verifySiteCommand(), p.exportSiteCommand(), p.versionCommand())
	return root
}
