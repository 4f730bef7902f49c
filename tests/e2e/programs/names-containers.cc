/* SPDX-License-Identifier: BSD-3-Clause */
/* The ways in which C++ programs come by memory. Every block has a size of its own; "@block" tells which name the block
 * of that size is to be reported under. */
/* @libc++ 448 440
 * @libc++ 520 528
 * @libc++ 700 11200
 * @libc++ 328 320
 * @libc++ 3016 3024
 * @libc++ 5001 5008
 * @libc++ 848 840
 * @libc++ 920 928
 * @libc++ 10001 10016 */
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

template <int N> struct blob {
    char bytes[N];
};

/* What compilers must not leave out. */
static void keep(const volatile void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

/* Members made by a constructor's list, several of them on a line, and in its body. */
class Solver
{
  public:
    /* @block 80000 Solver::u_
     * @block 80008 Solver::v_
     * @block 40008 Solver::w_
     * @block 40000 Solver::idx_
     * @block 80024 Solver::raw_
     * @block 80032 Solver::later_
     * @block 80040 Solver::other_
     * @block 38400 Solver::grown_ */
    explicit Solver(int n)
        : n_(n),
          u_(n),
          v_(n + 1, 1.0), w_(n + 2), idx_(new int[n]), raw_((double *)malloc(n * 8 + 24))
    {
        later_.resize(n + 4);
        other_ = new double[n + 5];
        grown_.reserve(64);
        for (int i = 0; i < 50; i++)
            grown_.push_back(blob<600>());
    }
    ~Solver()
    {
        delete[] idx_;
        delete[] other_;
        free(raw_);
    }
    double run()
    {
        double s = 0;
        for (int i = 0; i < n_; i++)
            s += v_[i] = u_[i] + w_[i] + idx_[i] + later_[i];
        keep(raw_);
        return s + other_[3] + grown_[3].bytes[1];
    }

  private:
    int n_;
    std::vector<double> u_, v_;
    std::vector<float> w_;
    int *idx_;
    double *raw_;
    std::vector<double> later_;
    double *other_;
    std::vector<blob<600>> grown_;
};

/* An open structure: each of its objects has a name of its own. */
namespace fe
{
template <typename Scalar> struct Vector {
    explicit Vector(int n) : start(0), coefs(n)
    {
    }
    int start;
    std::vector<Scalar> coefs;
};

struct Field {
    Field() : values(nullptr)
    {
    }
    void allocate_values(int n)
    {
        values = new double[n];
    }
    void set_up(int n)
    {
        values = static_cast<double *>(std::calloc(n, sizeof(double)));
    }
    double *values;
};
} // namespace fe

/* The constructor's body on the line of its initialisers. */
struct Level {
    std::vector<double> front, back, sides;
    explicit Level(size_t n) : front(n), back(n + 1) { sides.resize(n + 2); }
};

class Mesh
{
  public:
    /* @block 448 Mesh::cells_ (nodes)
     * @block 520 Mesh::table_ (nodes)
     * @block 616 Mesh::chain_ (nodes)
     * @block 656 Mesh::single_ (nodes)
     * @block 700 Mesh::queue_ (chunks)
     * @block 328 Mesh::set_ (nodes)
     * @block 264 Mesh::hashes_ (nodes)
     * @block 4024 Mesh::hashes_ (buckets)
     * @block 2008 Mesh::unique_
     * @block 3016 Mesh::shared_
     * @block 5001 Mesh::name_
     * @block 56040 Mesh::arr_ */
    explicit Mesh(int n) : unique_(new blob<2008>), shared_(std::make_shared<blob<3000>>()), name_(5000, 'x')
    {
        hashes_.reserve(500);
        for (int i = 0; i < n; i++) {
            cells_[i] = blob<408>();
            table_.emplace(i, blob<508>());
            chain_.push_back(blob<600>());
            single_.emplace_front();
            queue_.push_back(blob<700>());
            set_.insert(std::string(1, 'a' + i) + std::string(200, 'b') + names_[i % 2]);
            hashes_.emplace(i);
        }
        arr_ = std::make_unique<double[]>(n + 7000);
    }
    size_t sum()
    {
        keep(name_.data());
        return cells_.size() + table_.size() + chain_.size() + queue_.size() + size_t(arr_[4]) + unique_->bytes[1] +
               shared_->bytes[2] + set_.size() + hashes_.size() + single_.front().bytes[3];
    }

  private:
    struct key {
        int value;
        char rest[244];
        key(int v) : value(v), rest()
        {
        }
        bool operator==(const key &other) const
        {
            return value == other.value;
        }
    };
    struct hash_of_key {
        size_t operator()(const key &k) const
        {
            return size_t(k.value);
        }
    };
    struct longer {
        std::string text;
        char rest[264];
        longer(const std::string &t) : text(t), rest()
        {
        }
        bool operator<(const longer &other) const
        {
            return text < other.text;
        }
    };
    const char *names_[2] = {"x", "y"};
    std::map<int, blob<408>> cells_;
    std::unordered_map<int, blob<508>> table_;
    std::list<blob<600>> chain_;
    std::forward_list<blob<648>> single_;
    std::deque<blob<700>> queue_;
    std::set<longer> set_;
    std::unordered_set<key, hash_of_key> hashes_;
    std::unique_ptr<blob<2008>> unique_;
    std::shared_ptr<blob<3000>> shared_;
    std::string name_;
    std::unique_ptr<double[]> arr_;
};

/* A matrix in the manner of Eigen: the object is three classes deep. */
namespace dense
{
inline void *aligned_malloc(size_t n)
{
    return aligned_alloc(64, (n + 63) / 64 * 64);
}
template <class T> struct DenseStorage {
    T *m_data;
    long m_rows;
    explicit DenseStorage(long n) : m_data(static_cast<T *>(aligned_malloc(n * sizeof(T)))), m_rows(n)
    {
    }
    ~DenseStorage()
    {
        free(m_data);
    }
};
template <class T> struct PlainObjectBase {
    DenseStorage<T> m_storage;
    explicit PlainObjectBase(long n) : m_storage(n)
    {
    }
};
template <class T> struct Matrix : PlainObjectBase<T> {
    explicit Matrix(long n) : PlainObjectBase<T>(n)
    {
    }
    T &operator[](long i)
    {
        return this->m_storage.m_data[i];
    }
};
} // namespace dense

/* Views in the manner of Kokkos, with a record of the block and without. */
namespace views
{
struct Record {
    size_t bytes;
    void *data;
};
struct HostSpace {
    void *allocate(size_t n) const
    {
        return aligned_alloc(64, (n + 63) / 64 * 64);
    }
};
template <class T> class View
{
    Record *m_track;
    T *m_ptr;

  public:
    View(const char *, size_t n)
    {
        HostSpace space;
        m_track = new Record();
        m_track->bytes = n * sizeof(T);
        m_ptr = static_cast<T *>(m_track->data = space.allocate(n * sizeof(T)));
        keep(m_ptr);
    }
    T &operator()(size_t i) const
    {
        return m_ptr[i];
    }
};
template <class T> class Shared
{
    std::shared_ptr<T[]> data_;

  public:
    Shared(const std::string &, size_t n) : data_(new T[n]())
    {
    }
    T &operator()(size_t i) const
    {
        return data_[i];
    }
};
} // namespace views

/* An allocator of the program's own. */
template <class T> struct AlignedAllocator {
    typedef T value_type;
    AlignedAllocator() = default;
    template <class U> AlignedAllocator(const AlignedAllocator<U> &)
    {
    }
    T *allocate(size_t n)
    {
        return static_cast<T *>(aligned_alloc(64, (n * sizeof(T) + 63) / 64 * 64));
    }
    void deallocate(T *p, size_t)
    {
        free(p);
    }
    bool operator==(const AlignedAllocator &) const
    {
        return true;
    }
    bool operator!=(const AlignedAllocator &) const
    {
        return false;
    }
};

/* @block 90000 everywhere
 * @block 90008 registry.list_of_numbers */
std::vector<int> everywhere;
struct {
    std::vector<double> list_of_numbers;
} registry;

template <class V> static double use(V &x, V &p, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++)
        s += x.coefs[i] += p.coefs[i] * 2;
    return s;
}

/* Filled by functions that are given the object: their callers know it. */
struct Row {
    double *values;
};
struct Pair {
    Row left, right;
};
static void fill(Row &row, long n)
{
    row.values = new double[n];
    keep(row.values);
}
static void fill_right(Pair *pair, long n)
{
    fill(pair->right, n);
}
class Holder
{
  public:
    void set_up(long n)
    {
        fill(row_, n);
        keep(row_.values);
    }

  private:
    /* @block 85208 Holder::row_.values */
    Row row_;
};

int main(int argc, char **)
{
    int n = 9999 + argc;
    Solver solver(n);
    Mesh mesh(argc + 4);
    /* @block 80320 x.coefs
     * @block 80328 p.coefs
     * @block 80336 r->coefs */
    fe::Vector<double> x(n + 40), p(n + 41);
    std::unique_ptr<fe::Vector<double>> r(new fe::Vector<double>(n + 42));
    /* @block 80400 field.values
     * @block 80408 second_field.values */
    fe::Field field, second_field;
    field.allocate_values(n + 50);
    second_field.set_up(n + 51);
    /* @block 80832 A
     * @block 81664 B
     * @block 82432 T
     * @block 83200 S */
    dense::Matrix<double> A(n + 104), B(n + 208);
    views::View<double> T("T", n + 304);
    views::Shared<double> S("S", n + 400);
    /* @block 84800 level.front
     * @block 84808 level.back
     * @block 84816 level.sides */
    Level level(n + 600);
    /* @block 80480 plain
     * @block 80488 second
     * @block 84032 aligned
     * @block 848 local_map (nodes)
     * @block 920 local_table (nodes)
     * @block 10001 text
     * @block 6000 made */
    std::vector<double> plain(n + 60), second(n + 61);
    std::vector<double, AlignedAllocator<double>> aligned(n + 504);
    std::map<int, blob<808>> local_map;
    std::unordered_map<int, blob<908>> local_table;
    std::string text(n, 'c');
    for (int i = 0; i < 7; i++) {
        local_map[i] = blob<808>();
        local_table[i].bytes[0] = 1;
    }
    auto made = std::make_unique<blob<6000>>();
    /* @block 80560 rows */
    std::vector<std::vector<double>> rows(3, std::vector<double>(n + 70));
    everywhere.resize(n * 2 + 2500);
    registry.list_of_numbers.assign(n + 1251, 1.0);
    /* @block 85216 single.values
     * @block 85224 handed->values
     * @block 85232 pair.left.values
     * @block 85240 pair.right.values */
    Row single, *handed = new Row;
    Pair pair;
    Holder holder;
    holder.set_up(n + 651);
    fill(single, n + 652);
    fill(*handed, n + 653);
    fill(pair.left, n + 654);
    fill_right(&pair, n + 655);
    keep(&holder);
    for (int i = 0; i < n; i++) {
        A[i] = i;
        B[i] = A[i];
        T(i) = B[i];
        S(i) = T(i);
        plain[i] = S(i);
        second[i] = 1;
        aligned[i] = plain[i];
        field.values[i] = second_field.values[i] = i;
    }
    keep(text.data());
    keep(level.front.data());
    keep(level.back.data());
    keep(level.sides.data());
    keep(&A[1]);
    keep(&B[1]);
    keep(made.get());
    keep(field.values);
    keep(second_field.values);
    keep(everywhere.data());
    double s = solver.run() + double(mesh.sum()) + use(x, p, n) + r->coefs[3] + made->bytes[5] + plain[4] + second[5] +
               rows[1][4] + double(local_map.size() + local_table.size()) + registry.list_of_numbers[3] + aligned[7];
    printf("%g\n", s);
}
