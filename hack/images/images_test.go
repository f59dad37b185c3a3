// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"debug/buildinfo"
	"debug/elf"
	"flag"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	. "github.com/onsi/gomega"
)

const (
	testVersion = "v9.8.7-test"
	testCommit  = "0123456789abcdef0123456789abcdef01234567"
	testImage   = "registry.example.com/team/cluster-api-vcd-controller"
)

// archs are the architectures of the test images. Each further one compiles all dependencies again.
var archs = flag.String("archs", strings.Join(architectures(), ","), "architectures to build for, separated by commas")

// folders are the folders of the test images. TestMain removes them.
var folders []string

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	for _, folder := range folders {
		_ = os.RemoveAll(folder)
	}
	os.Exit(code)
}

func buildFrom(root string) (build, error) {
	out, err := os.MkdirTemp("", "images-test-*")
	if err != nil {
		return build{}, err
	}
	folders = append(folders, out)
	b := build{
		root:    root,
		out:     out,
		version: testVersion,
		commit:  testCommit + "-dirty",
		created: time.Unix(1_700_000_000, 0),
		image:   testImage,

		architectures: strings.Split(*archs, ","),
	}
	return b, b.run(context.Background(), io.Discard)
}

// built builds all images once for all tests.
var built = sync.OnceValues(func() (build, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return build{}, err
	}
	return buildFrom(root)
})

func images(t *testing.T, file string) (*WithT, []opened) {
	t.Helper()
	g := NewWithT(t)
	b, err := built()
	g.Expect(err).NotTo(HaveOccurred())
	return g, readArchive(g, filepath.Join(b.out, file+".tar")).images()
}

func fileOf(p program) string { return build{image: testImage}.file(p.image) }

func TestEveryImageCanBeOpened(t *testing.T) {
	names := map[string]string{carrierName: "registry.example.com/team/cpi-crs-airgapped:" + testVersion}
	for _, p := range programs() {
		names[fileOf(p)] = "registry.example.com/team/" + fileOf(p) + ":" + testVersion
	}
	for file, name := range names {
		t.Run(file, func(t *testing.T) {
			g, images := images(t, file)
			b, _ := built()
			top, _ := readArchive(g, filepath.Join(b.out, file+".tar")).top()

			g.Expect(top.Annotations).To(HaveKeyWithValue("io.containerd.image.name", name))
			g.Expect(top.Annotations).To(HaveKeyWithValue("org.opencontainers.image.ref.name", testVersion))
			var built []string
			for _, image := range images {
				built = append(built, image.arch)
			}
			g.Expect(built).To(Equal(strings.Split(*archs, ",")))
			for _, image := range images {
				checkConfig(g, image)
				checkFiles(g, image)
				beside, err := os.ReadFile(filepath.Join(b.out, file+"-linux-"+image.arch+".cdx.json"))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(string(image.sbom)).To(Equal(string(beside)))
			}
		})
	}
}

// checkConfig checks the common settings of all images.
func checkConfig(g *WithT, image opened) {
	const date = "2023-11-14T22:13:20Z"
	c := image.config.Config
	g.Expect(c.User).To(Equal("65532:65532"))
	g.Expect(c.WorkingDir).To(Equal("/"))
	g.Expect(image.config.Created).To(Equal(date))
	for _, h := range image.config.History {
		g.Expect(h.Created).To(Equal(date))
	}
	g.Expect(c.Labels).To(And(
		HaveKeyWithValue("org.opencontainers.image.version", testVersion),
		HaveKeyWithValue("org.opencontainers.image.revision", testCommit),
		HaveKeyWithValue("org.opencontainers.image.created", date),
		HaveKeyWithValue("org.opencontainers.image.licenses", "Apache-2.0"),
		HaveKeyWithValue("org.opencontainers.image.title", Not(BeEmpty())),
		HaveKeyWithValue("org.opencontainers.image.description", Not(BeEmpty())),
		HaveKeyWithValue("org.opencontainers.image.source", "https://"+module)))
}

// checkFiles checks that only root can change the files in an image, and that the image contains the project's license.
func checkFiles(g *WithT, image opened) {
	for name, e := range image.files {
		g.Expect([]int{e.header.Uid, e.header.Gid}).To(Equal([]int{0, 0}), name)
		g.Expect(e.header.ModTime.Unix()).To(Equal(int64(1_700_000_000)), name)
		if name == "/tmp" {
			g.Expect(e.header.Mode).To(Equal(int64(0o1777)))
			continue
		}
		g.Expect(e.header.Mode&0o7022).To(BeZero(), name)
		g.Expect(e.header.Mode&0o044).To(Equal(int64(0o044)), name)
	}
	license, err := os.ReadFile("../../LICENSE")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(image.files["/licenses/LICENSE"].content)).To(Equal(string(license)))
}

func TestEveryProgramIsInItsImage(t *testing.T) {
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	for _, p := range programs() {
		t.Run(p.name, func(t *testing.T) {
			g, images := images(t, fileOf(p))
			for _, image := range images {
				c := image.config.Config
				g.Expect(c.Entrypoint).To(Equal([]string{p.binary}))
				g.Expect(c.Cmd).To(Equal(p.args))
				g.Expect(slices.Sorted(maps.Keys(c.ExposedPorts))).To(Equal(slices.Sorted(slices.Values(p.ports))))
				g.Expect(image.files[p.binary].header.Mode).To(Equal(int64(0o755)))
				g.Expect(x509.NewCertPool().AppendCertsFromPEM(
					image.files["/etc/ssl/certs/ca-certificates.crt"].content)).To(BeTrue())
				g.Expect(bytes.Count(image.files["/etc/ssl/certs/ca-certificates.crt"].content,
					[]byte("BEGIN CERTIFICATE"))).To(BeNumerically(">", 100))
				g.Expect(string(image.files["/etc/passwd"].content)).To(ContainSubstring("nonroot:x:65532:65532:"))

				binary, err := elf.NewFile(bytes.NewReader(image.files[p.binary].content))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(binary.Machine).To(Equal(machines[image.arch]))
				g.Expect(binary.Section(".symtab")).To(BeNil(), "stripped")
				g.Expect(binary.Section(".debug_info")).To(BeNil(), "stripped")
				for _, part := range binary.Progs {
					g.Expect(part.Type).NotTo(BeElementOf(elf.PT_INTERP, elf.PT_DYNAMIC), "static")
				}
			}
		})
	}
}

// A bom is the content of a bill of materials.
type bom struct {
	BOMFormat, SpecVersion, SerialNumber string
	Metadata                             struct{ Component bomComponent }
	Components                           []bomComponent
	Dependencies                         []struct {
		Ref       string
		DependsOn []string
	}
}

type bomComponent struct {
	Name, Version, PURL string
	BOMRef              string `json:"bom-ref"`
	Hashes              []struct{ Alg, Content string }
	Licenses            []struct{ License struct{ ID string } }
}

func TestSBOMsListTheModulesOfTheProgram(t *testing.T) {
	for _, p := range programs() {
		t.Run(p.name, func(t *testing.T) {
			g, images := images(t, fileOf(p))
			for _, image := range images {
				info, err := buildinfo.Read(bytes.NewReader(image.files[p.binary].content))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(info.Settings).To(ContainElement(debug.BuildSetting{Key: "-tags", Value: tags}))
				want := []string{"std@" + strings.TrimPrefix(info.GoVersion, "go")}
				for _, dep := range info.Deps {
					g.Expect(dep.Replace).To(BeNil(), dep.Path)
					want = append(want, dep.Path+"@"+dep.Version)
				}
				bill := into[bom](g, image.sbom)

				g.Expect([]string{bill.BOMFormat, bill.SpecVersion}).To(Equal([]string{"CycloneDX", "1.6"}))
				g.Expect(bill.SerialNumber).To(
					MatchRegexp(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`))
				g.Expect("sha256:" +
					bill.Metadata.Component.Hashes[0].Content).To(Equal(digest(image.files[p.binary].content)))
				g.Expect(bill.Metadata.Component.Version).To(Equal(testVersion))
				var listed, refs []string
				for _, c := range bill.Components {
					listed = append(listed, c.Name+"@"+c.Version)
					refs = append(refs, c.BOMRef)
					g.Expect(c.PURL).To(HavePrefix("pkg:golang/" + c.Name + "@"))
					g.Expect(c.Licenses).NotTo(BeEmpty(), "%s has a licence that was recognised", c.Name)
					g.Expect(image.files).To(HaveKey(HavePrefix("/licenses/third-party/"+c.Name)), c.Name)
				}
				g.Expect(listed).To(ConsistOf(want))
				g.Expect(bill.Dependencies[0].DependsOn).To(ConsistOf(refs))
			}
		})
	}
}

// TestProgramsPrintTheirVersion runs the programs of the images.
func TestProgramsPrintTheirVersion(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the programs require Linux")
	}
	for _, p := range programs() {
		t.Run(p.name, func(t *testing.T) {
			g, images := images(t, fileOf(p))
			for _, image := range images {
				if image.arch != runtime.GOARCH {
					continue
				}
				cmd := exec.Command(image.extract(t, p.binary), "--version")
				cmd.Env = []string{}
				out, err := cmd.CombinedOutput()

				g.Expect(err).NotTo(HaveOccurred(), string(out))
				g.Expect(string(out)).To(HavePrefix(testVersion + " (commit 0123456789ab-dirty, go"))
			}
		})
	}
}

// TestTheCarrierIsReadableByContainerServiceExtension checks names and formats that external programs rely on.
func TestTheCarrierIsReadableByContainerServiceExtension(t *testing.T) {
	g, images := images(t, "cpi-crs-airgapped")
	for _, image := range images {
		var files []string
		for name, e := range image.files {
			if e.header.FileInfo().Mode().IsRegular() && !strings.HasPrefix(name, "/licenses/") {
				files = append(files, name)
			}
		}
		g.Expect(files).To(ConsistOf("/src/artifact/cloud-director-ccm-crs-airgap.yaml.template",
			"/src/artifact/dependencies.txt", "/src/artifact/bom.json"))
		g.Expect(image.config.Config.Entrypoint).To(Equal([]string{"/bin/sh"}))
		g.Expect(string(image.files["/src/artifact/dependencies.txt"].content)).To(
			Equal("__REGISTRY__ cloud-provider-for-cloud-director " + testVersion + "\n"))
		g.Expect(string(image.files["/src/artifact/bom.json"].content)).To(MatchJSON(`{
			"name": "cpi-crs-airgapped", "version": "` + testVersion + `", "components": {
				"manifests": [{"name": "cloud-director-ccm-crs-airgap.yaml.template", "url": ""}],
				"binaries": [],
				"dependencies": [{"name": "cloud-provider-for-cloud-director", "version": "` + testVersion + `", "imageRepository": "__REGISTRY__"}]}}`))
		template := string(image.files["/src/artifact/cloud-director-ccm-crs-airgap.yaml.template"].content)
		g.Expect(strings.Count(template, "__REGISTRY__")).To(Equal(1))
		g.Expect(template).To(ContainSubstring("__REGISTRY__/cloud-provider-for-cloud-director:" +
			testVersion))
		g.Expect(template).NotTo(MatchRegexp(`__(VERSION|GIT_COMMIT)__`))
	}
}

// TestBuildsAreReproducible builds a copy of the source in another folder.
func TestBuildsAreReproducible(t *testing.T) {
	g := NewWithT(t)
	first, err := built()
	g.Expect(err).NotTo(HaveOccurred())
	elsewhere := filepath.Join(t.TempDir(), "another", "place")
	copySource(g, first.root, elsewhere)

	second, err := buildFrom(elsewhere)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(digests(g, second.out)).To(Equal(digests(g, first.out)))
	files := 1 + len(first.platforms()) // the archive, and one bill of materials per image
	g.Expect(digests(g, first.out)).To(HaveLen(files * (len(programs()) + 1)))
}

func digests(g *WithT, folder string) map[string]string {
	found := map[string]string{}
	entries, err := os.ReadDir(folder)
	g.Expect(err).NotTo(HaveOccurred())
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(folder, e.Name()))
		g.Expect(err).NotTo(HaveOccurred())
		found[e.Name()] = digest(content)
	}
	return found
}

// copySource copies the source, including uncommitted changes.
func copySource(g *WithT, from, to string) {
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = from
	names, err := list.Output()
	g.Expect(err).NotTo(HaveOccurred())
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(from, name))
		if os.IsNotExist(err) || err == nil && !info.Mode().IsRegular() {
			continue // deleted but not committed, or a symbolic link: no package is one
		}
		g.Expect(err).NotTo(HaveOccurred())
		content, err := os.ReadFile(filepath.Join(from, name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(to, name), content, 0o644)).To(Succeed())
	}
}

// TestImagesArePushed pushes an image, and pulls it as a container runtime does.
func TestImagesArePushed(t *testing.T) {
	g := NewWithT(t)
	first, err := built()
	g.Expect(err).NotTo(HaveOccurred())
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	b := first
	b.out = t.TempDir()
	b.image = strings.TrimPrefix(server.URL, "http://") + "/team/cluster-api-vcd-controller"
	b.only = []string{"vcdsim"}
	b.toRegistry = true

	g.Expect(b.run(t.Context(), io.Discard)).To(Succeed())

	reference, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/team/vcdsim:" + testVersion)
	g.Expect(err).NotTo(HaveOccurred())
	for _, arch := range b.platforms() {
		image, err := remote.Image(reference, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(validate.Image(image)).To(Succeed())
	}
}

func TestAnUnresponsiveRegistryIsNamed(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.NotFoundHandler())
	host := strings.TrimPrefix(server.URL, "http://")
	server.Close()
	b := build{image: host + "/team/manager", version: "v1.0.0"}

	g.Expect(b.push(t.Context(), "", empty.Index)).To(MatchError(And(
		ContainSubstring("pushing "+host+"/team/manager:v1.0.0"), ContainSubstring("docker login"))))
}

func TestBadFlags(t *testing.T) {
	good := build{version: "v1.0.0", image: "registry.example.com/team/manager"}
	for _, tc := range []struct {
		name, message string
		change        func(*build)
	}{
		{"no version", "there is no --version", func(b *build) { b.version = "" }},
		{"an image without a registry", "is not a name with a registry", func(b *build) { b.image = "manager" }},
		{"an image with a tag", "it is the version", func(b *build) { b.image += ":v1" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			b := good
			g.Expect(b.check()).To(Succeed())
			tc.change(&b)

			g.Expect(b.check()).To(MatchError(ContainSubstring(tc.message)))
		})
	}
	g := NewWithT(t)
	g.Expect(good.writeFolder(t.Context(), folderOf{program: "other"})).To(MatchError(`there is no program "other"`))
}
